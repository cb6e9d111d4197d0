"""How far an import has come: replay of its records and headers, checkpoints, the digest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.batch import encode_batch, scan_batches
from quorum.control import SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.errors import ReplayError
from quorum.types import SnapshotId
from statemachine.codec import encode_record
from statemachine.delta import ImageDelta
from statemachine.dump import DigestedValues, count_records, dump_values, state_digest
from statemachine.image import EMPTY_IMAGE, MetadataImage, Provenance
from statemachine.import_state import ImportState, SourcePosition, position_of
from statemachine.imports import is_blank
from statemachine.loading import load_checkpoint
from statemachine.machine import StateMachine
from statemachine.records import (
    BeginImportRecord,
    Extra,
    FeatureLevelRecord,
    ImportStateRecord,
    InitProducerRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.compressed_batch import compressed

LEVEL = FeatureLevelRecord("metadata.version", 19)
BEGIN = BeginImportRecord("source", -1, False, 0)
TOPIC = TopicRecord("t", b"t" * 16)


def in_log(offset):
    return SourcePosition(is_in_log=True, offset=offset)


def headers(begin, end):
    return (("source-offset", begin.encode()), ("source-next", end.encode()))


class Replica:
    """A state machine fed with batches as a follower gets them."""

    def __init__(self):
        self.machine = StateMachine()

    def apply(self, *records, headers=()):
        base = self.machine.end_offset
        values = [encode_record(record) for record in records]
        return self.machine.apply(
            encode_batch(values, base_offset=base, epoch=1, timestamp=9, headers=headers)
        )


def checkpoint_of(image: MetadataImage) -> list[bytes]:
    values = DigestedValues(image)
    data = list(values)
    base = 1 + len(data)
    return [
        encode_control_batch([SnapshotHeader(9)], base_offset=0, epoch=1, timestamp=9),
        encode_batch(data, base_offset=1, epoch=1, timestamp=9),
        encode_control_batch(
            [SnapshotFooter(values.digest())], base_offset=base, epoch=1, timestamp=9
        ),
    ]


def test_a_batchs_headers_move_the_position_on_a_follower():
    """The range that a batch covers may hold more offsets than it has records."""
    replica = Replica()
    replica.apply(LEVEL)
    image = replica.apply(BEGIN)
    assert image.source == ImportState("source", -1, in_log(0))
    assert image.features.metadata_version == 0
    image = replica.apply(LEVEL, TOPIC, headers=headers("0", "7"))
    assert image.source == ImportState("source", -1, in_log(7))
    assert image.features.metadata_version == 19
    image = replica.apply(LEVEL, headers=(("principal", b"x"),))
    assert image.source == ImportState("source", -1, in_log(7))


def test_the_end_is_stated_and_later_headers_mean_nothing():
    replica = Replica()
    replica.apply(BEGIN)
    image = replica.apply(
        ImportStateRecord("source", -1, False, 5, True, 44), headers=headers("0", "5")
    )
    assert image.source == ImportState("source", -1, in_log(5), True, 44)
    assert image.source.has_brought(44)
    assert not image.source.has_brought(45)
    assert replica.apply(LEVEL, headers=headers("0", "9")).source == image.source


def test_everything_is_brought_while_the_import_goes_on():
    assert ImportState("source", -1, in_log(0)).has_brought(10**9)


@pytest.mark.parametrize(
    "found",
    [
        headers("1", "7"),
        headers("0", "x"),
        headers("0", ""),
        headers("checkpoint:0", "7"),
        headers("-1", "7"),
        (("source-offset", b"0"),),
        (("source-offset", b"\xff"), ("source-next", b"1")),
        (("source-offset", None), ("source-next", b"1")),
        headers("0", "9" * 30),
    ],
)
def test_a_batch_that_does_not_follow_contradicts_the_image(found):
    replica = Replica()
    before = replica.apply(BEGIN)
    with pytest.raises(ReplayError):
        replica.apply(TOPIC, headers=found)
    assert replica.machine.image is before


@pytest.mark.parametrize(
    "content",
    [TOPIC, RegisterBrokerRecord(1, broker_epoch=0), InitProducerRecord(0, 0), BEGIN],
)
def test_an_import_begins_only_in_an_empty_image(content):
    replica = Replica()
    replica.apply(content)
    with pytest.raises(ReplayError):
        replica.apply(BEGIN)


@pytest.mark.parametrize(
    "state",
    [
        ImportStateRecord("other", -1, False, 9),
        ImportStateRecord("source", 3, False, 9),
        ImportStateRecord("source", -1, False, 4),
        ImportStateRecord("source", -1, True, 9),
    ],
)
def test_a_state_that_goes_back_or_is_anothers_contradicts_the_image(state):
    replica = Replica()
    replica.apply(replace(BEGIN, next_offset=5))
    with pytest.raises(ReplayError):
        replica.apply(state)


def imported() -> MetadataImage:
    replica = Replica()
    replica.apply(BEGIN)
    return replica.apply(LEVEL, TOPIC, headers=headers("0", "7"))


def test_the_state_survives_a_checkpoint_and_takes_no_part_in_the_digest():
    image = imported()
    plain = image.at(Provenance())
    assert state_digest(image) == state_digest(plain)
    assert count_records(image) == count_records(plain) + 1 == len(list(dump_values(image)))
    loaded = load_checkpoint(SnapshotId(3, 1), checkpoint_of(image)).image
    assert loaded.source == image.source
    assert loaded.has_content_of(image)
    assert list(DigestedValues(loaded)) == list(dump_values(image))


def test_an_import_goes_on_behind_a_checkpoint():
    """A replica that fetched the checkpoint takes the next range, and no other."""
    replica = Replica()
    replica.machine.load(SnapshotId(3, 1), checkpoint_of(imported()))
    with pytest.raises(ReplayError):
        replica.apply(TopicRecord("u", b"u" * 16), headers=headers("8", "9"))
    image = replica.apply(TopicRecord("u", b"u" * 16), headers=headers("7", "9"))
    assert image.source == ImportState("source", -1, in_log(9))


def test_unknown_fields_of_the_state_are_written_back():
    delta = ImageDelta(EMPTY_IMAGE)
    delta.replay(ImportStateRecord("source", -1, False, 7, extra=Extra((1, "x"))))
    image = delta.finish()
    loaded = load_checkpoint(SnapshotId(3, 1), checkpoint_of(image)).image
    assert list(dump_values(loaded)) == list(dump_values(image))
    assert loaded.extras == image.extras


def test_the_digest_equals_that_of_the_same_records_without_an_import():
    replica = Replica()
    assert state_digest(replica.apply(LEVEL, TOPIC)) == state_digest(imported())


def test_progress_counts_as_a_change_of_the_checkpoints_record():
    delta = ImageDelta(imported())
    delta.set_source(ImportState("source", -1, in_log(8)))
    assert delta.changed_keys == {(ImportStateRecord.API_KEY,)}


def test_an_abandoned_fork_keeps_where_the_import_is():
    delta = ImageDelta(imported())
    fork = delta.fork()
    fork.set_source(ImportState("source", -1, in_log(9)))
    assert delta.source == imported().source
    assert fork.finish().source == ImportState("source", -1, in_log(9))


@pytest.mark.parametrize("position", [in_log(0), in_log(2**63 - 1), SourcePosition(False, 12)])
def test_positions_are_written_and_read(position):
    assert position_of(position.text()) == position


def test_a_checkpoint_comes_before_the_log():
    assert SourcePosition(False, 10**9) < in_log(0) < in_log(1)


def test_blank_means_nothing_but_feature_levels():
    assert is_blank(Replica().apply(LEVEL))
    assert not is_blank(Replica().apply(TOPIC))


def test_batch_headers_alone_distinguish_batches_of_producers():
    """A compressed batch is read the slow way and gives the same."""
    value = encode_record(TOPIC)
    packed = compressed(
        encode_batch([value], base_offset=1, epoch=1, timestamp=9, headers=headers("0", "3"))
    )
    assert scan_batches(packed)[0].codec == 4
    replica = Replica()
    replica.apply(BEGIN)
    assert replica.machine.apply(packed).source == ImportState("source", -1, in_log(3))
