"""The epoch of a batch lies outside its checksum.

``quorum-state`` bounds it, the stored log digest proves it, and a leader change begins each.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.errors import LogDamagedError
from quorum.log.config import LogConfig
from quorum.log.layout import EPOCH_FILE_NAME, WATERMARK_NAMES, segment_path
from quorum.log.recovery import open_log
from quorum.types import OffsetAndEpoch
from simulation.memory_filesystem import CrashMode, Faults, MemoryFileSystem, PowerLost

DIRECTORY = Path("/log")


def test_a_batch_of_an_epoch_never_reached_is_damaged() -> None:
    """Write a log that ends in epoch 3 and open it as a replica that knows epoch 2 only."""
    fs = MemoryFileSystem()
    log, _ = open_log(fs, DIRECTORY)
    first = encode_batch([b"a"], base_offset=0, epoch=2, timestamp=0)
    log.append(first, base_offset=0, end_offset=1)
    second = encode_batch([b"b"], base_offset=1, epoch=3, timestamp=0)
    log.append(second, base_offset=1, end_offset=2)
    log.close()

    open_log(fs, DIRECTORY, epoch_max=3)[0].close()
    with pytest.raises(LogDamagedError, match="epoch 3") as caught:
        open_log(fs, DIRECTORY, epoch_max=2)

    assert (caught.value.offset, caught.value.position) == (1, len(first))


EPOCH_END = 16
EPOCHS = (1, 1, 1, 3, 3, 4, 4)
OPENED_BY = (0, 3, 5)
"""Leader changes among them."""


def quorum_log() -> tuple[MemoryFileSystem, list[bytes]]:
    """A log as a quorum writes it, closed; one record in each batch."""
    batches = []
    for offset, epoch in enumerate(EPOCHS):
        if offset in OPENED_BY:
            change = LeaderChange(1, (1,), (1,))
            made = encode_control_batch([change], base_offset=offset, epoch=epoch, timestamp=1)
        else:
            made = encode_batch([b"a"], base_offset=offset, epoch=epoch, timestamp=1)
        batches.append(made)
    fs = MemoryFileSystem()
    write(fs, batches)
    return fs, batches


def write(fs: MemoryFileSystem, batches: list[bytes], first: int = 0) -> None:
    log, _ = open_log(fs, DIRECTORY)
    for offset, batch in enumerate(batches, first):
        log.append(batch, base_offset=offset, end_offset=offset + 1)
    log.close()


def flipped(batches: list[bytes], at: int, bit: int) -> bytes:
    damaged = bytearray(b"".join(batches))
    damaged[sum(map(len, batches[:at])) + EPOCH_END - 1] ^= 1 << bit
    return bytes(damaged)


def lose_marks(fs: MemoryFileSystem) -> None:
    for name in WATERMARK_NAMES:
        fs.unlink(DIRECTORY / name)


@pytest.mark.parametrize("bit", range(3))
@pytest.mark.parametrize("at", range(len(EPOCHS)))
def test_no_epoch_is_believed_without_a_stored_digest(at: int, bit: int) -> None:
    """Both marks are lost with it."""
    fs, batches = quorum_log()
    lose_marks(fs)
    fs.write_bytes(segment_path(DIRECTORY, 0), flipped(batches, at, bit))

    with pytest.raises(LogDamagedError):
        open_log(fs, DIRECTORY, epoch_max=4)


def test_an_intact_log_opens_without_a_stored_digest() -> None:
    fs, _ = quorum_log()
    lose_marks(fs)
    log, report = open_log(fs, DIRECTORY, epoch_max=4)
    log.close()
    assert report.end == OffsetAndEpoch(len(EPOCHS), 4)


def test_a_digest_proves_the_epochs_below_it() -> None:
    """Only an epoch above the durable end is in doubt: nothing below it is given up."""
    fs, batches = quorum_log()
    marks = [fs.read_bytes(DIRECTORY / name) for name in WATERMARK_NAMES]
    added = encode_batch([b"a"], base_offset=len(EPOCHS), epoch=4, timestamp=1)
    write(fs, [added], len(EPOCHS))
    for name, content in zip(WATERMARK_NAMES, marks, strict=True):
        fs.write_bytes(DIRECTORY / name, content)
    fs.write_bytes(segment_path(DIRECTORY, 0), flipped([*batches, added], len(EPOCHS), 0))

    with pytest.raises(LogDamagedError, match="without a leader change") as caught:
        open_log(fs, DIRECTORY, epoch_max=5)

    assert caught.value.offset == len(EPOCHS)


def opening(offset: int, epoch: int) -> bytes:
    change = LeaderChange(1, (1,), (1,))
    return encode_control_batch([change], base_offset=offset, epoch=epoch, timestamp=1)


def test_the_first_batch_of_a_trimmed_log_is_compared_with_the_epoch_file() -> None:
    """A leader change does not name its epoch, and nothing is left in front of it."""
    fs = MemoryFileSystem()
    start = OffsetAndEpoch(6, 1)
    log, _ = open_log(fs, DIRECTORY, snapshots=[start])
    log.append(opening(6, 2) + opening(7, 4), base_offset=6, end_offset=8)
    log.close()
    path = segment_path(DIRECTORY, 6)
    data = bytearray(fs.read_bytes(path))
    data[EPOCH_END - 1] = 3
    fs.write_bytes(path, bytes(data))
    lose_marks(fs)

    with pytest.raises(LogDamagedError, match="leader-epoch-checkpoint has epoch 2") as caught:
        open_log(fs, DIRECTORY, snapshots=[start], epoch_max=5)

    assert caught.value.offset == 6


def test_a_damaged_epoch_file_costs_no_epoch_of_several_batches() -> None:
    """Method: flip every bit of the file, which has no checksum, and lose both marks."""
    fs, _ = quorum_log()
    content = fs.read_bytes(DIRECTORY / EPOCH_FILE_NAME)
    lose_marks(fs)
    for at in range(8 * len(content)):
        copy, damaged = fs.clone(), bytearray(content)
        damaged[at // 8] ^= 1 << at % 8
        copy.write_bytes(DIRECTORY / EPOCH_FILE_NAME, bytes(damaged))
        log, report = open_log(copy, DIRECTORY, epoch_max=9)
        log.close()
        assert report.end == OffsetAndEpoch(len(EPOCHS), 4)


def test_an_epoch_file_with_an_epoch_never_reached_is_the_damaged_one() -> None:
    """Method: the last epoch has one batch, so nothing but the file could contradict it."""
    fs, _ = quorum_log()
    write(fs, [opening(len(EPOCHS), 5)], len(EPOCHS))
    lose_marks(fs)
    content = fs.read_bytes(DIRECTORY / EPOCH_FILE_NAME)
    for wrong, is_believed in ((b"6 7", True), (b"7 7", False)):
        copy = fs.clone()
        copy.write_bytes(DIRECTORY / EPOCH_FILE_NAME, content.replace(b"5 7", wrong))
        if is_believed:
            with pytest.raises(LogDamagedError, match="leader-epoch-checkpoint has epoch 6"):
                open_log(copy, DIRECTORY, epoch_max=6)
        else:
            open_log(copy, DIRECTORY, epoch_max=6)[0].close()


@pytest.mark.parametrize("steps", range(1, 30))
def test_the_epoch_file_never_contradicts_an_intact_log(steps: int) -> None:
    """Cut a log and write a later epoch from there on; lose power anywhere in between."""
    fs, _ = quorum_log()
    log, _ = open_log(fs, DIRECTORY)
    fs.faults = Faults(stop_after_call=steps)
    try:
        log.truncate_to(3)
        log.append(opening(3, 5), base_offset=3, end_offset=4)
        log.flush()
    except PowerLost:
        fs.crash(random.Random(steps), CrashMode(keep_writes=2.0, keep_names=2.0))
    fs.faults = Faults()
    lose_marks(fs)
    log, report = open_log(fs, DIRECTORY, epoch_max=5)
    log.close()
    assert report.end.offset in (3, 4, 5, 6, 7)


def test_the_digest_of_a_segment_proves_the_epochs_before_it() -> None:
    """Method: the epoch file contradicts an epoch of one batch, in a sealed segment."""
    fs = MemoryFileSystem()
    batches = [opening(offset, epoch) for offset, epoch in enumerate((1, 2, 4))]
    log, _ = open_log(fs, DIRECTORY, LogConfig(segment_bytes=len(batches[0])))
    for offset, batch in enumerate(batches):
        log.append(batch, base_offset=offset, end_offset=offset + 1)
    log.close()
    lose_marks(fs)
    assert fs.exists(segment_path(DIRECTORY, 2))
    content = fs.read_bytes(DIRECTORY / EPOCH_FILE_NAME)

    for right, wrong, is_proven in ((b"2 1", b"3 1", True), (b"4 2", b"3 2", False)):
        assert right in content
        copy = fs.clone()
        copy.write_bytes(DIRECTORY / EPOCH_FILE_NAME, content.replace(right, wrong))
        if is_proven:
            open_log(copy, DIRECTORY, epoch_max=4)[0].close()
        else:
            with pytest.raises(LogDamagedError, match="leader-epoch-checkpoint has epoch 3"):
                open_log(copy, DIRECTORY, epoch_max=4)


def test_a_digest_proves_nothing_before_it_is_known() -> None:
    """Method: a log whose first known digest is that of a checkpoint, as after an adoption.

    An epoch before the checkpoint is flipped; the digest stored with the mark does not change.
    """
    fs = MemoryFileSystem()
    start, checkpoint = OffsetAndEpoch(2, 1), OffsetAndEpoch(5, 3)
    batches = [
        encode_batch([b"a"], base_offset=2, epoch=1, timestamp=1),
        opening(3, 3),
        encode_batch([b"a"], base_offset=4, epoch=3, timestamp=1),
        opening(5, 4),
    ]
    log, _ = open_log(fs, DIRECTORY, snapshots=[start])
    log.append(b"".join(batches), base_offset=2, end_offset=6)
    log.close()

    def reopen() -> None:
        log, report = open_log(
            fs,
            DIRECTORY,
            snapshots=[start, checkpoint],
            snapshot_digest=lambda taken: b"\x01" * 32 if taken == checkpoint else b"",
            epoch_max=4,
        )
        assert log.digest_at(report.end.offset)
        log.append(
            encode_batch([b"a"], base_offset=report.end.offset, epoch=4, timestamp=1),
            base_offset=report.end.offset,
            end_offset=report.end.offset + 1,
        )
        log.close()

    reopen()
    reopen()
    path = segment_path(DIRECTORY, 2)
    damaged = bytearray(fs.read_bytes(path))
    damaged[len(batches[0]) + EPOCH_END - 1] = 2
    fs.write_bytes(path, bytes(damaged))

    with pytest.raises(LogDamagedError, match="without a leader change") as caught:
        reopen()

    assert caught.value.offset == 3


def test_a_proven_batch_proves_its_epoch_as_far_as_that_reaches_back() -> None:
    """Goal: one wrong epoch at the end does not cost the whole log.

    Method: the digest is known from a checkpoint on, which lies in the middle of an epoch. The last
    batch, above the durable end, has a wrong epoch.
    """
    fs = MemoryFileSystem()
    start, checkpoint = OffsetAndEpoch(2, 1), OffsetAndEpoch(4, 3)
    batches = [
        opening(2, 3),
        *(encode_batch([b"a"], base_offset=at, epoch=3, timestamp=1) for at in (3, 4, 5)),
    ]
    config = LogConfig(segment_bytes=2 * len(batches[0]))
    known = {
        "snapshots": [start, checkpoint],
        "snapshot_digest": lambda taken: b"\x01" * 32 if taken == checkpoint else b"",
    }
    log, _ = open_log(fs, DIRECTORY, config, snapshots=[start])
    for offset, batch in enumerate(batches, 2):
        log.append(batch, base_offset=offset, end_offset=offset + 1)
    log.close()
    open_log(fs, DIRECTORY, config, **known, epoch_max=3)[0].close()
    log, _ = open_log(fs, DIRECTORY, config, **known, epoch_max=3)
    assert log.segment_bases == (2, 4)
    assert log.digest_at(6)
    marks = [fs.read_bytes(DIRECTORY / name) for name in WATERMARK_NAMES]
    added = encode_batch([b"a"], base_offset=6, epoch=3, timestamp=1)
    log.append(added, base_offset=6, end_offset=7)
    log.close()
    for name, content in zip(WATERMARK_NAMES, marks, strict=True):
        fs.write_bytes(DIRECTORY / name, content)
    path = segment_path(DIRECTORY, 6)
    damaged = bytearray(fs.read_bytes(path))
    damaged[-len(added) + EPOCH_END - 1] = 4
    fs.write_bytes(path, bytes(damaged))

    with pytest.raises(LogDamagedError, match="without a leader change") as caught:
        open_log(fs, DIRECTORY, config, **known, epoch_max=4)

    assert (caught.value.path, caught.value.offset) == (path, 6)
