"""Producer ids: blocks, fresh identities, epochs, lost replies and rotation (360.1 to 360.4)."""

from __future__ import annotations

import dataclasses

import pytest

from quorum.errors import CommandError, ErrorCode, ReplayError
from statemachine.codec import decode_record, encode_record
from statemachine.commands import AllocateProducerIds, InitProducerId
from statemachine.dump import dump_records
from statemachine.fingerprint import owner_digest
from statemachine.prepare import prepare
from statemachine.producers import Fresh, SequenceClaim, check_sequence
from statemachine.records import (
    ExpireProducerRecord,
    InitProducerRecord,
    ProducerIdsRecord,
    ProducerStateRecord,
    TransactionalIdRecord,
    TransactionPartitions,
)
from tests.support.image_builder import after, evaluation, replayed, small_cluster


def init(image, name=None, pid=-1, epoch=-1, **fields):
    return prepare(image, InitProducerId(name, pid, epoch, **fields), evaluation())


def run(image, name=None, pid=-1, epoch=-1):
    """Return the image after the command, and the allocated identity."""
    prepared = init(image, name, pid, epoch)
    found = (prepared.result["producer_id"], prepared.result["producer_epoch"])
    return after(image, prepared.records), found


def refusal(image, *arguments, **fields):
    with pytest.raises(CommandError) as caught:
        init(image, *arguments, **fields)
    return caught.value.code


def exhausted(name="n", *, last=-1, previous=-1):
    """A named producer, id 7, in the last epoch that a client may have."""
    return replayed(
        InitProducerRecord(7, 32_766),
        TransactionalIdRecord(
            name,
            producer_id=7,
            previous_producer_id=previous,
            producer_epoch=32_766,
            last_producer_epoch=last,
            timeout_ms=60_000,
        ),
    )


def test_blocks_and_writers_share_one_counter():
    image = small_cluster()
    prepared = prepare(image, AllocateProducerIds(1, 11), evaluation())
    assert prepared.records == [ProducerIdsRecord(1, 11, 1_000)]
    assert prepared.result == {"first_producer_id": 0, "producer_id_count": 1_000}
    image, identity = run(after(image, prepared.records))
    assert identity == (1_000, 0)
    prepared = prepare(image, AllocateProducerIds(1, 11), evaluation())
    assert prepared.result["first_producer_id"] == 1_001


def test_a_block_needs_the_current_broker_incarnation_and_free_ids():
    for command in (AllocateProducerIds(1, 12), AllocateProducerIds(9, 19)):
        with pytest.raises(CommandError) as caught:
            prepare(small_cluster(), command, evaluation())
        assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH
    image = small_cluster(ProducerIdsRecord(1, 11, 2**63 - 1_000))
    with pytest.raises(CommandError) as caught:
        prepare(image, AllocateProducerIds(1, 11), evaluation())
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_anonymous_writers_get_fresh_ids_and_bump_their_own():
    image, first = run(replayed())
    image, second = run(image)
    assert (first, second) == ((0, 0), (1, 0))
    image, bumped = run(image, None, 0, 0)
    assert bumped == (0, 1)
    assert init(image, None, 0, 0).records == []
    assert run(image, None, 0, 0)[1] == (0, 1)


def test_an_anonymous_writer_of_the_past_is_refused_once_the_new_epoch_was_used():
    image = replayed(ProducerStateRecord(0, 1, 3))
    assert refusal(image, None, 0, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    unused = replayed(InitProducerRecord(0, 2))
    assert init(unused, None, 0, 1).records == []
    assert refusal(unused, None, 0, 0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_expired_writer_gets_a_fresh_id():
    image, identity = run(replayed())
    image = replayed(ExpireProducerRecord(0), base=image)
    assert run(image, None, *identity)[1] == (1, 0)


def test_a_named_writer_keeps_its_id_and_bumps_its_epoch():
    image, first = run(replayed(), "n")
    image, second = run(image, "n")
    assert (first, second) == ((0, 0), (0, 1))
    known = image.producers.transactional_ids.get("n")
    assert (known.producer_epoch, known.last_producer_epoch) == (1, -1)


def test_a_named_writer_is_stored_with_the_timeout_it_asked_for_and_the_time():
    for name in "n", "other":
        image, _ = run(replayed(), "n")
        known = init(image, name, timeout_ms=1_234).records[-1]
        assert isinstance(known, TransactionalIdRecord)
        assert (known.timeout_ms, known.last_update_ms) == (1_234, evaluation().wall_ms)


def test_the_expected_identity_decides():
    image, _ = run(replayed(), "n")
    image, bumped = run(image, "n", 0, 0)
    assert bumped == (0, 1)
    assert image.producers.transactional_ids.get("n").last_producer_epoch == 0
    assert init(image, "n", 0, 0).records == []
    assert run(image, "n", 0, 0)[1] == (0, 1)
    assert refusal(image, "n", 5, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    image, _ = run(image, "n", 0, 1)
    assert refusal(image, "n", 0, 0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_after_a_takeover_the_old_identity_is_refused():
    image, old = run(replayed(), "n")
    image, _ = run(image, "n")
    assert refusal(image, "n", *old) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_exhausted_epoch_rotates_and_its_lost_reply_is_answered_again():
    image, rotated = run(exhausted(), "n", 7, 32_766)
    assert rotated == (8, 0)
    known = image.producers.transactional_ids.get("n")
    assert (known.previous_producer_id, known.last_producer_epoch) == (7, 32_766)
    assert init(image, "n", 7, 32_766).records == []
    assert run(image, "n", 7, 32_766)[1] == (8, 0)
    image, _ = run(image, "n", 8, 0)
    assert refusal(image, "n", 7, 32_766) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unnamed_producer_rotates_and_its_lost_reply_is_answered_again():
    """Goal: 360.3 without a name. Method: repeat the request, then use the new id, then repeat."""
    image = replayed(InitProducerRecord(7, 32_766))
    prepared = init(image, None, 7, 32_766)
    assert prepared.records == [InitProducerRecord(8, 0, 7)]
    image, rotated = run(image, None, 7, 32_766)
    assert rotated == (8, 0)
    assert init(image, None, 7, 32_766).records == []
    assert run(image, None, 7, 32_766)[1] == (8, 0)
    assert refusal(image, None, 7, 32_765) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(image, None, 7, 32_767) is ErrorCode.INVALID_PRODUCER_EPOCH
    bumped, _ = run(image, None, 8, 0)
    assert refusal(bumped, None, 7, 32_766) is ErrorCode.INVALID_PRODUCER_EPOCH
    written = replayed(ProducerStateRecord(8, 0, 3), base=image)
    assert refusal(written, None, 7, 32_766) is ErrorCode.INVALID_PRODUCER_EPOCH
    expired = replayed(ExpireProducerRecord(8), base=image)
    assert run(expired, None, 7, 32_766)[1] == (9, 0)


@pytest.mark.parametrize("name", ["n", None])
def test_nobody_writes_under_an_id_that_was_replaced(name):
    """Goal: a former process is fenced over a rotation as well (360.3), also after a checkpoint."""
    image = exhausted("n") if name else replayed(InitProducerRecord(7, 32_766))
    claim = SequenceClaim(7, 32_766, 0, 0)
    assert check_sequence(image, claim) == Fresh()
    image, rotated = run(image, name, 7, 32_766)
    assert rotated == (8, 0)
    values = [encode_record(record) for record in dump_records(image)]
    for each in (image, replayed(*(decode_record(value) for value in values))):
        for epoch in (32_766, 32_767):
            with pytest.raises(CommandError) as caught:
                check_sequence(each, dataclasses.replace(claim, producer_epoch=epoch))
            assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH, epoch
            assert caught.value.known.current_producer_id == 8
            assert caught.value.known.transactional_id == (name or "")
        assert (
            check_sequence(each, dataclasses.replace(claim, producer_id=8, producer_epoch=0))
            == Fresh()
        )
        assert run(each, name, 7, 32_766)[1] == (8, 0)


def test_an_id_is_replaced_once():
    image = replayed(InitProducerRecord(7, 32_766), InitProducerRecord(8, 0, 7))
    for again in (InitProducerRecord(9, 0, 7), InitProducerRecord(9, 0, 5)):
        with pytest.raises(ReplayError):
            replayed(again, base=image)


def test_rotation_without_an_expectation_cannot_be_retried_by_the_old_identity():
    image, rotated = run(exhausted(), "n")
    assert rotated == (8, 0)
    assert refusal(image, "n", 7, 32_766) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_last_epoch_is_kept_for_fencing():
    image = exhausted(last=32_765)
    assert run(image, "n", 7, 32_765)[1] == (7, 32_766)


def test_a_forgotten_mapping_yields_a_fresh_id():
    assert run(replayed(), "n", 40, 3)[1] == (0, 0)


def test_a_named_writer_whose_producer_row_expired_gets_another_id():
    image, _ = run(replayed(), "n")
    image = replayed(ExpireProducerRecord(0), base=image)
    assert run(image, "n")[1] == (1, 0)


def test_the_lost_reply_after_an_expiry_is_answered_again():
    image, first = run(replayed(), "n")
    image = replayed(ExpireProducerRecord(0), base=image)
    image, second = run(image, "n", *first)
    assert (first, second) == ((0, 0), (1, 0))
    assert init(image, "n", *first).records == []
    assert run(image, "n", *first)[1] == second
    image, bumped = run(image, "n", *second)
    assert bumped == (1, 1)
    assert run(image, "n", *second)[1] == bumped
    assert refusal(image, "n", *first) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_lost_reply_for_a_forgotten_mapping_is_answered_again():
    image, first = run(replayed(), "n", 40, 3)
    assert init(image, "n", 40, 3).records == []
    assert run(image, "n", 40, 3)[1] == first
    assert refusal(image, "n", 40, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    image, _ = run(image, "n")
    assert refusal(image, "n", 40, 3) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_named_producers_epoch_is_raised_only_with_its_name():
    image, identity = run(replayed(), "n")
    assert refusal(image, None, *identity) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert run(image, "n")[1] == (0, 1)


def test_a_producers_epoch_is_raised_only_by_its_principal():
    image = replayed(ProducerStateRecord(0, 1, owner=owner_digest("User:a")))
    command = InitProducerId(None, 0, 1)
    with pytest.raises(CommandError) as caught:
        prepare(image, command, evaluation(principal="User:b"))
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    mine = prepare(image, command, evaluation(principal="User:a"))
    assert mine.records == [InitProducerRecord(0, 2)]


@pytest.mark.parametrize(("ahead", "expected"), [(5, (7, 6)), (32_766, (8, 0))])
def test_a_named_producer_that_was_raised_behind_its_back_goes_on(ahead, expected):
    """A release let strangers do that; the name was refused until it expired."""
    image = replayed(
        InitProducerRecord(7, 0),
        TransactionalIdRecord("n", producer_id=7, producer_epoch=0),
        InitProducerRecord(7, ahead),
    )
    again, identity = run(image, "n")
    assert identity == expected
    again, identity = run(image, "n", 7, 0)
    assert identity == expected
    assert run(again, "n", 7, 0)[1] == expected


@pytest.mark.parametrize("status", [1, 2, 3, 6, 7])
def test_an_unsettled_transaction_must_be_waited_for(status):
    image = replayed(
        InitProducerRecord(7, 0),
        TransactionalIdRecord("n", producer_id=7, producer_epoch=0, status=status),
    )
    assert refusal(image, "n") is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("arguments", "fields", "code"),
    [
        (("",), {}, ErrorCode.INVALID_REQUEST),
        (("n" * 256,), {}, ErrorCode.INVALID_REQUEST),
        (("n", 3), {}, ErrorCode.INVALID_REQUEST),
        (("n", -1, 3), {}, ErrorCode.INVALID_REQUEST),
        (("n", 3, 40_000), {}, ErrorCode.INVALID_REQUEST),
        (("n",), {"timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (("n",), {"timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_malformed_requests(arguments, fields, code):
    assert refusal(replayed(), *arguments, **fields) is code


def test_writers_are_the_same_in_either_codec():
    for command in (InitProducerId(), InitProducerId("n")):
        native, kafka = (
            prepare(replayed(), command, evaluation(native=native)) for native in (True, False)
        )
        assert native == kafka


def test_all_that_is_known_of_a_transactional_id_survives_a_checkpoint():
    """Goal: 360.2, every field. Method: none of them its default, through a dump."""
    known = TransactionalIdRecord(
        "n",
        producer_id=9,
        previous_producer_id=7,
        producer_epoch=3,
        last_producer_epoch=2,
        timeout_ms=60_000,
        status=1,
        partitions=(TransactionPartitions("t", (0, 2)),),
        last_update_ms=5_000,
        start_ms=4_000,
    )
    plain = TransactionalIdRecord()
    names = [each.name for each in dataclasses.fields(known)]
    assert [name for name in names if getattr(known, name) == getattr(plain, name)] == ["extra"]
    image = replayed(InitProducerRecord(9, 3), known)
    values = [encode_record(record) for record in dump_records(image)]
    again = replayed(*(decode_record(value) for value in values))
    assert again.producers.transactional_ids.get("n") == known
    replaced = dataclasses.replace(known, status=4, partitions=())
    assert replayed(replaced, base=again).producers.transactional_ids.get("n") == replaced
