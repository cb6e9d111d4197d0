"""Headers kept from arrival to delivery: against a plain list, and their bounds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from quorum.batch import BatchHeader, VerifiedBatches, encode_batch, scan_batches
from quorum.runtime.delivery import Delivery
from quorum.runtime.tail import TailCache
from quorum.runtime.verified_batches import VerifiedTail, bytes_of

MANY = 1 << 20


def batch(base: int, records: int = 1, size: int = 10) -> bytes:
    return encode_batch([b"v" * size] * records, base_offset=base, epoch=1, timestamp=1)


def batches(first: int, end: int) -> tuple[bytes, list[BatchHeader]]:
    data = b"".join(batch(base) for base in range(first, end))
    return data, scan_batches(data)


def content(parts: Sequence[VerifiedBatches]) -> list[tuple[int, bytes]]:
    """Base offset and bytes of each batch, found as the state machine finds them."""
    return [
        (each.base_offset, part.data[each.position : each.end_position])
        for part in parts
        for each in part.headers
    ]


class World:
    """A tail with a model beside it, and a delivery that is checked against the model."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tail = TailCache()
        self.tail.verified = VerifiedTail(batches_max=8, bytes_max=1000)
        self.log: list[tuple[int, int, bytes]] = []
        self.end = self.committed = 0
        self.with_headers = self.without = 0
        self.delivery = Delivery(self.tail.read, self.tail.verified, self)  # type: ignore[arg-type]

    def on_committed(
        self, data: bytes, end_offset: int, verified: Sequence[VerifiedBatches]
    ) -> None:
        expected = [
            (base, piece)
            for base, end, piece in self.log
            if self.start <= base and end <= end_offset
        ]
        assert data == b"".join(piece for _, piece in expected)
        if verified:
            assert content(verified) == expected
            assert bytes_of(verified) == data
            self.with_headers += 1
        else:
            self.without += 1
        self.start = end_offset

    def grow(self) -> None:
        base, group = self.end, []
        for _ in range(self.rng.randint(1, 4)):
            count = self.rng.randint(1, 3)
            data = batch(self.end, count, self.rng.randint(1, 50))
            self.log.append((self.end, self.end + count, data))
            self.end += count
            group.append(data)
        data = b"".join(group)
        headers = scan_batches(data) if self.rng.random() < 0.8 else ()
        self.tail.append(data, base, self.end, headers)

    def cut(self) -> None:
        end = self.rng.choice([e for _, e, _ in self.log if e >= self.committed] or [self.end])
        self.log = [each for each in self.log if each[1] <= end]
        self.end = end
        self.tail.truncate_to(end)

    def deliver(self) -> None:
        ends = [end for _, end, _ in self.log if end > self.committed]
        if ends:
            self.committed = self.rng.choice(ends)
            self.start = self.delivery.end_offset
            while self.delivery.end_offset < self.committed:
                assert self.delivery.deliver_some(self.committed, self.rng.randint(1, 600)) > 0


def test_delivery_equals_the_log_whatever_is_kept() -> None:
    """Goal: no order of appends, cuts and commits delivers other batches than the log has.

    Method: random steps with narrow bounds; every delivery is compared with the model, batch by
    batch, in both forms.
    """
    with_headers = without = 0
    for seed in range(60):
        world = World(random.Random(seed))
        for _ in range(60):
            world.rng.choice([world.grow, world.grow, world.cut, world.deliver])()
            assert world.tail.verified.batch_count <= 8
            assert world.tail.verified.size_bytes <= 1000
        with_headers += world.with_headers
        without += world.without
    assert with_headers > 300
    assert without > 300


def test_a_replaced_batch_is_never_taken() -> None:
    """Goal: a cut removes the headers too. Method: another batch at the same offset, unverified."""
    tail = TailCache()
    data, headers = batches(0, 4)
    tail.append(data, 0, 4, headers)
    tail.truncate_to(2)
    assert (tail.verified.batch_count, tail.verified.size_bytes) == (2, tail.size_bytes)
    tail.append(batch(2, size=20), 2, 3)
    assert content(tail.verified.take(0, MANY, 3)) == [(0, batch(0)), (1, batch(1))]
    assert tail.verified.take(2, MANY, 3) == []


def test_a_reset_drops_everything() -> None:
    """Goal: a replaced log has no headers. Method: the same offsets again, after a reset."""
    tail = TailCache()
    tail.append(*_appended(0, 4))
    tail.reset(0)
    assert tail.verified.take(0, MANY, 4) == []
    assert (tail.verified.batch_count, tail.verified.size_bytes) == (0, 0)


def test_what_was_taken_is_let_go() -> None:
    """Goal: memory follows what is not delivered. Method: take everything, in two steps."""
    verified = VerifiedTail()
    verified.append(*batches(0, 4))
    assert content(verified.take(0, MANY, 3))[-1] == (2, batch(2))
    assert verified.batch_count == 4
    assert content(verified.take(3, MANY, 9)) == [(3, batch(3))]
    assert (verified.batch_count, verified.size_bytes) == (0, 0)


def test_whole_appends_are_not_copied() -> None:
    """Goal: delivery copies no bytes that arrived together."""
    verified = VerifiedTail()
    data, headers = batches(0, 4)
    verified.append(data, headers)
    assert bytes_of(verified.take(0, MANY, 4)) is data


@pytest.mark.parametrize(
    ("room", "taken"),
    [(1, 1), (len(batch(0)) * 2, 2), (len(batch(0)) * 3, 3), (MANY, 4)],
)
def test_a_delivery_is_bounded_in_bytes(room: int, taken: int) -> None:
    """Goal: a turn ends in time. Method: two appends; at least one batch, whatever the bound."""
    verified = VerifiedTail()
    verified.append(*batches(0, 3))
    verified.append(*batches(3, 4))
    assert len(content(verified.take(0, room, 4))) == taken


def test_beyond_the_bounds_nothing_is_kept() -> None:
    """Goal: a replica that applies slowly does not fill its memory."""
    for verified in (VerifiedTail(batches_max=3), VerifiedTail(bytes_max=3 * len(batch(0)))):
        verified.append(*batches(0, 2))
        verified.append(*batches(2, 4))
        assert verified.batch_count == 2
        verified.append(*batches(4, 5))
        assert verified.batch_count == 3
        assert [base for base, _ in content(verified.take(0, MANY, 5))] == [0, 1]
        assert verified.take(2, MANY, 5) == []


def _appended(first: int, end: int) -> tuple[bytes, int, int, list[BatchHeader]]:
    data, headers = batches(first, end)
    return data, first, end, headers
