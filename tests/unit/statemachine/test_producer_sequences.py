"""Duplicates get their first answer, applied commands are never applied twice (360.7, 360.8)."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from quorum.errors import CommandError, ErrorCode, ReplayError
from statemachine.codec import decode_record
from statemachine.delta import ImageDelta
from statemachine.dump import dump_values
from statemachine.fingerprint import owner_digest
from statemachine.image import EMPTY_IMAGE
from statemachine.producers import (
    HEADER_ANSWER,
    HEADER_FINGERPRINT,
    HEADER_OPEN,
    Duplicate,
    Fresh,
    SequenceClaim,
    check_sequence,
    encode_open,
)
from statemachine.records import (
    ExpireProducerRecord,
    InitProducerRecord,
    NoOpRecord,
    ProducerIdsRecord,
    ProducerStateRecord,
    TransactionalIdRecord,
)
from statemachine.sections.producer_state import Applied
from statemachine.sections.producers import PRODUCER_WINDOW

PRODUCER = 5


class Log:
    """A delta with a known producer, and the batches appended to it."""

    def __init__(self, principal=None) -> None:
        self.delta = ImageDelta(EMPTY_IMAGE)
        if principal is not None:
            self.delta.headers = (("principal", principal),)
        self.delta.replay(InitProducerRecord(PRODUCER, 0))

    def append(
        self, sequence, *, oldest_open=0, epoch=0, answer=None, producer=PRODUCER, command=None
    ):
        end = self.delta.end_offset
        header = SimpleNamespace(
            base_offset=end,
            end_offset=end + 1,
            epoch=3,
            max_timestamp=1000 + end,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        headers = [("principal", b"User:a"), (HEADER_OPEN, encode_open(oldest_open))]
        if answer is not None:
            headers.append((HEADER_ANSWER, answer))
        if command is not None:
            headers.append((HEADER_FINGERPRINT, command))
        self.delta.replay_batch(header, [NoOpRecord()], headers)

    def evaluate(
        self, sequence, *, oldest_open=0, epoch=0, producer=PRODUCER, owner=b"", command=b"", **kw
    ):
        claim = SequenceClaim(producer, epoch, sequence, oldest_open, owner, command)
        return check_sequence(self.delta, claim, **kw)

    @property
    def state(self):
        return self.delta.producers.states.get(PRODUCER)


def refused(log, code, *args, **kwargs):
    with pytest.raises(CommandError) as caught:
        log.evaluate(*args, **kwargs)
    assert caught.value.code == code


def test_a_duplicate_gets_the_first_answer():
    log = Log()
    log.append(0, answer=b"first")
    log.append(1)
    assert log.evaluate(0) == Duplicate(Applied(0, 1, 3, b"first"))
    assert log.evaluate(1) == Duplicate(Applied(1, 2, 3, None))
    assert log.evaluate(2) == Fresh()


def test_unknown_and_expired_producers():
    log = Log()
    refused(log, ErrorCode.UNKNOWN_PRODUCER_ID, 0, producer=6)
    assert log.evaluate(0) == Fresh(), "the one that is known"
    log.delta.replay(ExpireProducerRecord(PRODUCER))
    refused(log, ErrorCode.UNKNOWN_PRODUCER_ID, 0)


def test_epochs():
    log = Log()
    log.append(0)
    log.delta.replay(InitProducerRecord(PRODUCER, 2))
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 1, epoch=1)
    assert log.evaluate(0, epoch=2) == Fresh()
    # A client may raise its epoch itself; it begins at 0 again (360.6).
    assert log.evaluate(0, epoch=3) == Fresh()
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 4, epoch=3)
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=32_767)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 7, oldest_open=7, epoch=3)
    log.append(4, epoch=3)
    assert (log.state.epoch, log.state.last_sequence, len(log.state.applied)) == (3, 4, 1)
    assert log.evaluate(0, epoch=3) == Fresh()


def test_a_hole_may_be_filled_later_but_only_once():
    """A refused command's number stays a hole; the ones after it were applied before it."""
    log = Log()
    log.append(0)
    log.append(3)
    assert log.evaluate(1) == Fresh()
    log.append(1)
    assert isinstance(log.evaluate(1), Duplicate)
    assert log.evaluate(2) == Fresh()
    assert [entry.sequence for entry in log.state.applied] == [0, 1, 3]


def test_a_command_waits_for_the_open_ones_before_it():
    """Goal: 360.7, gaps. Numbers that the client no longer needs and unused ones are no gaps."""
    log = Log()
    log.append(0)
    log.append(1)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 5)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 5, oldest_open=3)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 5, unused={2, 4})
    assert log.evaluate(5, oldest_open=5) == Fresh()
    assert log.evaluate(5, unused={2, 3, 4}) == Fresh()
    assert log.evaluate(5, oldest_open=3, unused={3, 4}) == Fresh()
    log.append(5, oldest_open=0)
    assert log.evaluate(6) == Fresh(), "what was let through once is no hole any more"


def test_a_number_belongs_to_the_command_that_took_it():
    log = Log()
    log.append(0, answer=b"theirs", command=b"theirs")
    log.append(1)
    refused(log, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 0, command=b"mine")
    refused(log, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 0)
    assert log.evaluate(0, command=b"theirs").first.answer == b"theirs"
    # Batches of a release without fingerprints cannot be distinguished.
    assert isinstance(log.evaluate(1, command=b"mine"), Duplicate)


def test_a_producer_belongs_to_the_principal_that_got_it():
    log = Log(principal=b"User:a")
    owner = owner_digest("User:a")
    assert log.evaluate(0, owner=owner) == Fresh()
    for other in (b"", owner_digest("User:b")):
        refused(log, ErrorCode.INVALID_PRODUCER_ID_MAPPING, 0, owner=other)
        refused(log, ErrorCode.INVALID_PRODUCER_ID_MAPPING, 0, owner=other, epoch=1)
    log.append(0, epoch=1)
    refused(log, ErrorCode.INVALID_PRODUCER_ID_MAPPING, 1, owner=b"", epoch=1)
    assert log.evaluate(1, owner=owner, epoch=1) == Fresh()


def test_a_named_producer_gets_its_epochs_from_init_producer_id_alone():
    log = Log()
    log.delta.replay(TransactionalIdRecord("n", producer_id=PRODUCER, producer_epoch=0))
    assert log.evaluate(0) == Fresh()
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=1)
    log.delta.replay(TransactionalIdRecord("n", producer_id=6, producer_epoch=0))
    assert log.evaluate(0, epoch=1) == Fresh(), "the name holds another id now"


def test_who_and_what_survive_a_checkpoint():
    log = Log(principal=b"User:a")
    log.append(0, command=b"c" * 16)
    log.append(1, command=b"d" * 16)
    image = log.delta.view()
    again = ImageDelta(EMPTY_IMAGE)
    for value in dump_values(image):
        again.replay(decode_record(value))
    assert again.view().producers == image.producers
    assert again.producers.states.get(PRODUCER).answer_to(0).fingerprint == b"c" * 16


def test_a_row_with_fingerprints_of_other_commands_is_damage():
    delta = ImageDelta(EMPTY_IMAGE)
    with pytest.raises(ReplayError):
        delta.replay(ProducerStateRecord(1, fingerprints=(b"x",)))


def test_what_the_client_closed_is_forgotten_and_refused():
    log = Log()
    for sequence in range(5):
        log.append(sequence)
    log.append(5, oldest_open=4)
    assert [entry.sequence for entry in log.state.applied] == [4, 5]
    refused(log, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 3)
    assert isinstance(log.evaluate(4), Duplicate)
    # An older message of the client that names an older "open" does not widen the window.
    assert isinstance(log.evaluate(4, oldest_open=1), Duplicate)


def test_contradicting_itself_is_out_of_order():
    log = Log()
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 3, oldest_open=4)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 3, oldest_open=-1)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1 << 31)
    assert log.evaluate(0) == Fresh(), "what was refused has left nothing behind"


def test_the_window_has_an_end():
    log = Log()
    unused = range(PRODUCER_WINDOW)
    assert log.evaluate(PRODUCER_WINDOW - 1, unused=unused) == Fresh()
    refused(log, ErrorCode.PRODUCER_WINDOW_EXCEEDED, PRODUCER_WINDOW, unused=unused)
    assert log.evaluate(PRODUCER_WINDOW, oldest_open=1, unused=unused) == Fresh()
    # Refused commands leave holes behind, however many.
    assert log.evaluate(900, oldest_open=900) == Fresh()
    refused(log, ErrorCode.PRODUCER_WINDOW_EXCEEDED, 4, window=4, unused=unused)
    refused(log, ErrorCode.PRODUCER_WINDOW_EXCEEDED, PRODUCER_WINDOW, window=1000, unused=unused)


def test_no_more_answers_are_kept_than_the_window():
    """Batches that no leader of ours would have let through still leave a bounded table."""
    log = Log()
    for sequence in range(PRODUCER_WINDOW + 10):
        log.append(sequence)
    assert len(log.state.applied) == PRODUCER_WINDOW
    assert log.state.oldest_open == 10
    refused(log, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 9)


@pytest.mark.parametrize(
    "batch",
    [
        {"sequence": 0},
        {"sequence": 1, "producer": 6},
        {"sequence": 1, "epoch": -1},
    ],
)
def test_replay_refuses_what_no_leader_appends(batch):
    log = Log()
    log.append(0)
    with pytest.raises(ReplayError):
        log.append(**batch)


def test_replay_refuses_a_closed_sequence():
    log = Log()
    log.append(4, oldest_open=4)
    with pytest.raises(ReplayError):
        log.append(3, oldest_open=0)


def test_our_ids_and_kafka_blocks_come_from_one_counter():
    delta = ImageDelta(EMPTY_IMAGE)
    delta.replay(ProducerIdsRecord(1, 1, 1000))
    with pytest.raises(ReplayError):
        delta.replay(InitProducerRecord(999, 0))
    delta = ImageDelta(EMPTY_IMAGE)
    delta.replay(ProducerIdsRecord(1, 1, 1000))
    delta.replay(InitProducerRecord(1000, 0))
    assert delta.producers.next_id == 1001
    with pytest.raises(ReplayError):
        delta.replay(ProducerIdsRecord(1, 1, 1001))


def test_a_known_producer_needs_a_newer_epoch():
    log = Log()
    with pytest.raises(ReplayError):
        log.delta.replay(InitProducerRecord(PRODUCER, 0))


@pytest.mark.parametrize("seed", range(40))
def test_every_command_applies_at_most_once_and_answers_alike(seed):
    """A client with W commands in flight, messages lost, reordered and repeated, some refused.

    Whatever arrives, an applied command is never evaluated fresh again, and each retry of one
    that the client still waits for gets the first answer.
    """
    rng = random.Random(seed)
    log = Log()
    window = rng.choice([1, 3, PRODUCER_WINDOW])
    next_sequence, open_sequences = 0, []
    first_answers: dict[int, Applied] = {}
    messages: list[tuple[int, int]] = []
    unused: set[int] = set()
    for _ in range(600):
        oldest = min(open_sequences, default=next_sequence)
        if next_sequence < oldest + window and rng.random() < 0.5:
            open_sequences.append(next_sequence)
            next_sequence += 1
        if open_sequences:
            oldest = min(open_sequences)
            messages += [(rng.choice(open_sequences), oldest)] * rng.choice([0, 1, 1, 2])
        if not messages:
            continue
        sequence, oldest = messages.pop(rng.randrange(len(messages)))
        if sequence not in open_sequences and sequence < log.state.oldest_open:
            refused(log, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, sequence, oldest_open=oldest)
            continue
        floor = max(oldest, log.state.oldest_open, log.state.last_sequence + 1)
        if any(number not in unused for number in range(floor, sequence)):
            code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            refused(log, code, sequence, oldest_open=oldest, unused=unused)
            continue
        check_result = log.evaluate(sequence, oldest_open=oldest, unused=unused)
        if isinstance(check_result, Duplicate):
            assert check_result.first == first_answers[sequence]
        else:
            assert sequence not in first_answers
            if rng.random() < 0.7:
                log.append(sequence, oldest_open=oldest, answer=b"%d" % sequence)
                first_answers[sequence] = log.state.answer_to(sequence)
            else:
                unused.add(sequence)
        if sequence in open_sequences and rng.random() < 0.8:
            open_sequences.remove(sequence)
    assert len(first_answers) > 5
