"""A leader writes the batches that it has just encoded without reading them again."""

from __future__ import annotations

import random

import pytest

from quorum.batch import BatchHeader, encode_batch, encode_with_header, scan_batches
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.core.contract.output import Append
from quorum.errors import InvariantViolation
from quorum.log import append_checks
from quorum.runtime.proposals import checked_end
from statemachine.commands import ConfigChange, IncrementalAlterConfigs
from statemachine.records import NoOpRecord
from tests.support.lone_replica import LoneReplica

EPOCH = 3


def group(base_offset: int, count: int, position: int = 0) -> tuple[list[bytes], list[BatchHeader]]:
    batches, headers = [], []
    for number in range(count):
        batch, header = encode_with_header(
            [b"value"] * (number + 1),
            base_offset=base_offset,
            epoch=EPOCH,
            timestamp=7,
            position=position,
        )
        batches.append(batch)
        headers.append(header)
        base_offset, position = header.end_offset, header.end_position
    return batches, headers


def test_the_encoder_returns_the_header_that_a_reader_finds() -> None:
    """Goal: nobody can tell the two apart. Method: batches drawn in all fields, one by one."""
    rng = random.Random(5)
    for _ in range(300):
        fields = {
            "base_offset": rng.randrange(1 << 40),
            "epoch": rng.randrange(1 << 20),
            "timestamp": rng.randrange(1 << 42),
            "producer_id": rng.randrange(-1, 1 << 40),
            "producer_epoch": rng.randrange(-1, 1 << 14),
            "base_sequence": rng.randrange(-1, 1 << 30),
        }
        values = [rng.randbytes(rng.randint(1, 40)) for _ in range(rng.randint(1, 4))]
        named = [("principal", rng.randbytes(9))] if rng.random() < 0.5 else []
        before = rng.randbytes(rng.randint(0, 30))
        batch, header = encode_with_header(values, headers=named, position=len(before), **fields)
        assert batch == encode_batch(values, headers=named, **fields)
        (found,) = scan_batches(batch)
        assert header == found._replace(position=len(before))


def test_the_header_of_a_control_batch_says_so() -> None:
    """Goal: the encoder's header is complete. Method: a batch with control keys."""
    whole = encode_control_batch([LeaderChange(1, (1,), (1,))], base_offset=4, epoch=2, timestamp=7)
    (found,) = scan_batches(whole)
    _, header = encode_with_header(
        [b"v"], base_offset=4, epoch=2, timestamp=7, control_keys=[b"\0\0\0\2"]
    )
    assert found.is_control
    assert header.attributes == found.attributes


def test_batches_for_the_end_of_the_log_are_accepted() -> None:
    """Goal: a group gets the offsets that it was encoded for."""
    batches, headers = group(10, 3)
    assert checked_end(batches, headers, 10, EPOCH) == 16


@pytest.mark.parametrize(
    "broken",
    [
        lambda batches, headers: (batches, headers, 11, EPOCH),
        lambda batches, headers: (batches, headers, 10, EPOCH + 1),
        lambda batches, headers: ([*batches[:2], batches[2] + b"x"], headers, 10, EPOCH),
        lambda batches, headers: (batches[::-1], headers[::-1], 10, EPOCH),
        lambda batches, headers: (batches[::2], headers[::2], 10, EPOCH),
        lambda batches, headers: (
            batches,
            [headers[0]._replace(position=1), *headers[1:]],
            10,
            EPOCH,
        ),
    ],
    ids=["offset", "epoch", "bytes", "order", "gap", "position"],
)
def test_anything_else_stops_the_process(broken) -> None:  # type: ignore[no-untyped-def]
    """Goal: no batch is written under a header that is not its own."""
    with pytest.raises(InvariantViolation, match="encoded for the position"):
        checked_end(*broken(*group(10, 3)))


@pytest.mark.interpreted
def test_a_leader_does_not_read_its_own_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: the log writer of a leader scans nothing. Method: a log whose scan fails.

    The writes are then read from the disk by a process that trusts nothing.
    """
    bench = LoneReplica().boot().lead()
    with monkeypatch.context() as patched:
        patched.setattr(append_checks, "scan_batches", pytest.fail)
        for value in range(3):
            change = ConfigChange("quorate.note", value=str(value))
            answers = bench.write(IncrementalAlterConfigs(4, "", (change,)), persist=False)
            appended = [
                each for one in bench.groups for each in one.effects if type(each) is Append
            ]
            (effect,) = appended
            assert list(effect.headers) == scan_batches(effect.payload or b"")
            bench.persist()
            assert [each.code for each in answers] == [0]
    end = bench.replica.node.log_end_offset
    bench.crash()
    bench.boot().lead()
    assert bench.replica.node.log_end_offset > end
    assert bench.replica.controller.image.configs.value(4, "", "quorate.note") == "2"


def test_the_controllers_own_batches_have_their_positions() -> None:
    """Goal: every batch of a group is placed behind the one before. Method: two without command."""
    replica = LoneReplica().boot().lead().replica
    former = replica.controller._proposer._begin_group(1, 1)
    assert former.add([NoOpRecord()])
    assert former.add([NoOpRecord(), NoOpRecord()])
    node = replica.node
    end_offset = checked_end(former.batches, former.batch_headers, node.log_end_offset, node.epoch)
    assert end_offset == node.log_end_offset + 3
