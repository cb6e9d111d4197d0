"""A changed epoch is reported at its batch: while a log is in use, at a start, and in a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.errors import LogDamagedError
from quorum.log.config import LogConfig
from quorum.log.layout import EPOCH_FILE_NAME, WATERMARK_NAMES, segment_bases
from quorum.log.readonly import open_readonly
from quorum.log.recovery import open_log
from quorum.log.verify import verify_log
from quorum.types import DigestAt
from simulation.memory_filesystem import MemoryFileSystem

HOME = Path("/node/__cluster_metadata-0")
EPOCHS = (1, 1, 1, 1, 3, 3, 3, 3, 9, 12, 12, 12)
OPENED_BY = (0, 4, 8, 9)
"""Leader changes among them; epoch 9 has no other batch."""
EPOCH_AT = 12
SMALL = LogConfig(segment_bytes=500)
Find = Callable[[MemoryFileSystem, DigestAt], LogDamagedError | None]


def written(config: LogConfig) -> tuple[MemoryFileSystem, DigestAt, list[tuple[Path, int]]]:
    """Return a closed log, its end, and the file and the position of each batch."""
    fs = MemoryFileSystem()
    log, _ = open_log(fs, HOME, config)
    sizes = []
    for offset, epoch in enumerate(EPOCHS):
        if offset in OPENED_BY:
            change = LeaderChange(1, (1,), (1,))
            made = encode_control_batch([change], base_offset=offset, epoch=epoch, timestamp=1)
        else:
            made = encode_batch([b"a" * 40], base_offset=offset, epoch=epoch, timestamp=1)
        log.append(made, base_offset=offset, end_offset=offset + 1)
        log.flush()
        sizes.append(len(made))
    end = DigestAt(log.tip[0].offset, log.tip[1])
    log.close()
    bases = segment_bases(fs.list_directory(HOME))
    places = []
    for offset in range(len(EPOCHS)):
        base = max(each for each in bases if each <= offset)
        places.append((HOME / f"{base:020d}.log", sum(sizes[base:offset])))
    return fs, end, places


def in_use(fs: MemoryFileSystem, end: DigestAt) -> LogDamagedError | None:
    return verify_log(fs, HOME, end).damage


def at_a_start(fs: MemoryFileSystem, end: DigestAt) -> LogDamagedError | None:
    try:
        open_log(fs, HOME, epoch_max=1 << 30)[0].close()
    except LogDamagedError as damage:
        return damage
    return None


@pytest.mark.parametrize("find", [in_use, at_a_start])
@pytest.mark.parametrize("config", [LogConfig(), SMALL], ids=["one segment", "small segments"])
def test_the_batch_with_the_changed_epoch_is_named(find: Find, config: LogConfig) -> None:
    fs, end, places = written(config)
    assert len({path for path, _ in places}) == (1 if config is not SMALL else 3)
    assert find(fs, end) is None
    for offset, (path, position) in enumerate(places):
        for bit in range(31):
            damaged = fs.clone()
            damaged.flip_bit(path, position + EPOCH_AT + 3 - bit // 8, bit % 8)
            found = find(damaged, end)
            assert found is not None
            named = (found.offset, found.position, found.path)
            assert named == (offset, position, path), (offset, bit, str(found))


def test_of_a_copy_without_a_digest_the_raised_batch_is_named() -> None:
    """Kafka's directories have no digest; their epochs fall behind the batch that was raised."""
    fs, _, places = written(LogConfig())
    for name in WATERMARK_NAMES:
        fs.unlink(HOME / name)
    for offset, (path, position) in enumerate(places[:8]):
        damaged = fs.clone()
        damaged.flip_bit(path, position + EPOCH_AT + 2, 0)
        log = open_readonly(HOME, damaged)
        log.close()
        assert log.damage is not None
        assert (log.damage.offset, log.damage.position) == (offset, position)


@pytest.mark.parametrize("find", [in_use, at_a_start])
def test_without_the_epoch_file_the_batches_behind_tell_which_one_is_wrong(find: Find) -> None:
    """The batch behind both decides; where both epochs are left, what opens an epoch does."""
    fs, end, places = written(LogConfig())
    fs.unlink(HOME / EPOCH_FILE_NAME)
    for offset, bit in ((1, 3), (2, 3), (4, 3), (5, 3), (5, 1), (10, 5)):
        damaged = fs.clone()
        path, position = places[offset]
        damaged.flip_bit(path, position + EPOCH_AT + 3, bit)
        found = find(damaged, end)
        assert found is not None
        assert (found.offset, found.position) == (offset, position), (offset, bit, str(found))
