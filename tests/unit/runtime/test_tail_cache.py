"""The tail cache against a plain list of batches, and its bounds."""

from __future__ import annotations

import random

import pytest

from quorum.batch import encode_batch, scan_batches
from quorum.errors import InvariantViolation
from quorum.runtime.tail import TailCache


def batch(base: int, records: int = 1, size: int = 10) -> bytes:
    return encode_batch([b"v" * size] * records, base_offset=base, epoch=1, timestamp=1)


class Model:
    """Batches as (base, end, bytes); answers by looking at every one."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, bytes]] = []
        self.end = 0

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        out = b""
        for _, end, data in self.batches:
            if end <= offset:
                continue
            if end > end_offset or (out and len(out) + len(data) > max_bytes):
                break
            out += data
            if len(out) > max_bytes:
                break
        return out


def grow(rng: random.Random, cache: TailCache, model: Model) -> None:
    """Append one group of several batches to both."""
    base, group = model.end, []
    for _ in range(rng.randint(1, 5)):
        count = rng.randint(1, 3)
        data = batch(model.end, count, rng.randint(1, 50))
        model.batches.append((model.end, model.end + count, data))
        model.end += count
        group.append(data)
    cache.append(b"".join(group), base, model.end)


@pytest.mark.parametrize("seed", range(30))
def test_reads_what_a_list_of_batches_reads(seed: int) -> None:
    """Random appends, truncations and reads; every read must equal the model's."""
    rng = random.Random(seed)
    cache, model = TailCache(), Model()
    for _ in range(60):
        grow(rng, cache, model)
        if rng.random() < 0.3:
            cut = rng.choice([0, *(end for _, end, _ in model.batches)])
            model.batches = [b for b in model.batches if b[1] <= cut]
            model.end = cut
            cache.truncate_to(cut)
        assert cache.end_offset == model.end
        assert cache.size_bytes == sum(len(b[2]) for b in model.batches)
        for _ in range(5):
            offset = rng.randint(0, model.end + 1)
            end_offset = rng.randint(0, model.end + 3)
            max_bytes = rng.randint(1, 600)
            assert cache.read(offset, max_bytes, end_offset) == model.read(
                offset, max_bytes, end_offset
            )


def test_reading_starts_at_the_batch_that_holds_the_offset() -> None:
    """An offset inside a batch of a group gives that whole batch first."""
    cache = TailCache()
    cache.append(batch(0, 2) + batch(2, 3) + batch(5), 0, 6)
    data = cache.read(4, 1 << 20, 6)
    assert data is not None
    assert [h.base_offset for h in scan_batches(data)] == [2, 5]


def test_a_whole_group_is_handed_out_without_a_copy() -> None:
    """The usual Fetch asks exactly for the newest group."""
    cache = TailCache()
    data = batch(0) + batch(1)
    cache.append(data, 0, 2)
    assert cache.read(0, 1 << 20, 2) is data


def test_below_the_start_the_caller_is_sent_to_the_files() -> None:
    """None is not an empty answer."""
    cache = TailCache()
    cache.reset(10)
    cache.append(batch(10), 10, 11)
    assert cache.read(9, 100, 11) is None
    assert cache.read(11, 100, 11) == b""


def test_eviction_keeps_what_is_not_durable_whatever_it_weighs() -> None:
    """Above the budget only durable groups are evicted, oldest first, and as few as possible."""
    cache = TailCache(bytes_max=len(batch(0)) * 2)
    for offset in range(5):
        cache.append(batch(offset), offset, offset + 1)
    cache.evict_below(0)
    assert cache.start_offset == 0
    cache.evict_below(2)
    assert cache.start_offset == 2
    assert cache.read(1, 100, 5) is None
    assert cache.read(2, 100, 5) == batch(2)
    cache.evict_below(5)
    assert (cache.start_offset, cache.end_offset) == (3, 5)


def test_many_appends_and_evictions_keep_the_cache_small() -> None:
    """The lists behind the moving head are compacted, and lookups stay right across that."""
    cache = TailCache(bytes_max=len(batch(0)) * 10)
    for offset in range(5000):
        cache.append(batch(offset), offset, offset + 1)
        cache.evict_below(offset + 1)
        assert cache.read(offset, 1, offset + 1) == batch(offset)
    assert cache.end_offset - cache.start_offset == 10
    assert len(cache._groups) < 2500


def test_misuse_is_an_invariant_violation() -> None:
    """A gap in appends and a cut inside a batch mean that we are wrong."""
    cache = TailCache()
    cache.append(batch(0, 3) + batch(3), 0, 4)
    with pytest.raises(InvariantViolation, match="continues"):
        cache.append(batch(5), 5, 6)
    with pytest.raises(InvariantViolation, match="between two batches"):
        cache.truncate_to(2)
    assert cache.end_offset == 4
