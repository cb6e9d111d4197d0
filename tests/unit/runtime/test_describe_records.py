"""Fetched records are described exactly or not at all."""

from __future__ import annotations

import random

import pytest

from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.core.messages.received_records import VotersAt
from quorum.runtime.received import describe_records
from quorum.types import Endpoint, EpochStart, ReplicaKey, Voter

VOTERS = (Voter(ReplicaKey(1, b"d" * 16), (Endpoint("CONTROLLER", "host", 9093),)),)


def batch(base: int, epoch: int, records: int = 1) -> bytes:
    return encode_batch([b"value"] * records, base_offset=base, epoch=epoch, timestamp=7)


def controls(base: int, epoch: int) -> bytes:
    return encode_control_batch(
        [LeaderChange(1, (1,), (1,)), KRaftVersion(1), Voters(VOTERS)],
        base_offset=base, epoch=epoch, timestamp=7,
    )  # fmt: skip


def test_epochs_voters_and_ends_are_found() -> None:
    """Three epochs, the second opened by a control batch with a voter set."""
    data = batch(10, 1, 2) + controls(12, 2) + batch(15, 2) + batch(16, 4, 3)
    found = describe_records(data, 10)
    assert found is not None
    assert (found.base_offset, found.end_offset) == (10, 19)
    assert found.epochs == (EpochStart(1, 10), EpochStart(2, 12), EpochStart(4, 16))
    assert found.voters == (VotersAt(14, VOTERS),)
    assert found.payload is data


@pytest.mark.parametrize(
    ("data", "base"),
    [
        (b"", 0),
        (batch(5, 1), 4),
        (batch(0, 1) + batch(2, 1), 0),
        (batch(0, 2) + batch(1, 1), 0),
        (batch(0, -1), 0),
        (batch(0, 1)[:-1], 0),
        (batch(0, 1) + b"\0", 0),
    ],
    ids=["empty", "other base", "gap", "falling epoch", "no epoch", "cut", "trailing"],
)
def test_anything_wrong_discards_everything(data: bytes, base: int) -> None:
    """A wrong base, a gap, a falling epoch or a cut make the whole answer worthless."""
    assert describe_records(data, base) is None


def test_no_flipped_bit_goes_unnoticed() -> None:
    """Flip each bit of a two-batch answer: None, or a change outside the checksum that is legal.

    Only the leader epoch lies outside both the checksum and the contiguity rules; a description
    may then differ from the original, but never be equal to it.
    """
    data = controls(3, 1) + batch(6, 1)
    original = describe_records(data, 3)
    assert original is not None
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        found = describe_records(bytes(damaged), 3)
        assert found is None or found.epochs != original.epochs


def test_random_bytes_raise_nothing() -> None:
    """Noise, alone and behind a good batch, is discarded without an exception."""
    rng = random.Random(5)
    for size in range(300):
        noise = rng.randbytes(size)
        assert describe_records(noise, 0) is None
        if noise:
            assert describe_records(batch(0, 1) + noise, 0) is None
