"""A corrupt epoch in a directory without a log digest is found from other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.main import main
from quorate.importer.errors import SourceDamagedError
from quorate.importer.source import open_source
from quorum.batch import encode_batch, scan_batches
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange, Voters
from quorum.log.epoch_evidence import LogFacts, epoch_problems
from quorum.log.epoch_file import encode_epochs
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks
from quorum.log.layout import segment_path
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.log.readonly import ReadOnlyLog, open_readonly, scan_and_evaluate
from quorum.log.segment import Segment
from quorum.log.segment_tail import SegmentTail
from quorum.types import EpochStart, OffsetAndEpoch
from simulation.memory_filesystem import MemoryFileSystem
from tests.support.kafka_directory import PARTITION, SEGMENT, whole_sample

HOME = Path("/kafka/__cluster_metadata-0")
EPOCH_AT, EPOCH_BYTES = 12, 4
EPOCHS = (EpochStart(1, 0), EpochStart(3, 3), EpochStart(4, 6))


def leader_change(offset: int, epoch: int) -> bytes:
    change = LeaderChange(1, (1,), (1,))
    return encode_control_batch([change], base_offset=offset, epoch=epoch, timestamp=1)


def data(offset: int, epoch: int) -> bytes:
    return encode_batch([b"a"], base_offset=offset, epoch=epoch, timestamp=1)


def voters(offset: int, epoch: int) -> bytes:
    """A control batch in the middle of an epoch."""
    return encode_control_batch([Voters(())], base_offset=offset, epoch=epoch, timestamp=1)


BATCHES = (
    leader_change(0, 1),
    data(1, 1),
    voters(2, 1),
    leader_change(3, 3),
    data(4, 3),
    data(5, 3),
    leader_change(6, 4),
    data(7, 4),
)


def directory(
    *batches: bytes,
    start: int = 0,
    epochs: tuple[EpochStart, ...] | None = EPOCHS,
    state_epoch: int | None = 4,
) -> MemoryFileSystem:
    """A partition directory as Kafka leaves it; None leaves a file out."""
    fs = MemoryFileSystem()
    fs.make_directory(HOME)
    fs.write_bytes(segment_path(HOME, start), b"".join(batches))
    if epochs is not None:
        fs.write_bytes(HOME / "leader-epoch-checkpoint", encode_epochs(epochs))
    if state_epoch is not None:
        line = f'{{"leaderId":1,"leaderEpoch":{state_epoch},"votedId":-1,"data_version":0}}'
        fs.write_bytes(HOME / "quorum-state", line.encode())
    return fs


def opened(fs: MemoryFileSystem) -> ReadOnlyLog:
    log = open_readonly(HOME.parent, fs)
    log.close()
    return log


def corrupt(batch: bytes, epoch: int) -> bytes:
    """The batch with another epoch, which its checksum does not cover."""
    return batch[:EPOCH_AT] + epoch.to_bytes(EPOCH_BYTES, "big") + batch[EPOCH_AT + EPOCH_BYTES :]


def test_an_intact_log_contradicts_no_file() -> None:
    assert opened(directory(*BATCHES)).epoch_problems == ()


@pytest.mark.parametrize("batch", range(len(BATCHES)))
def test_no_bit_of_any_epoch_passes_silently(batch: int) -> None:
    """With all witnesses there, in every batch and so in the last one too."""
    silent = []
    for bit in range(8 * EPOCH_BYTES):
        damaged = bytearray(BATCHES[batch])
        damaged[EPOCH_AT + bit // 8] ^= 1 << bit % 8
        batches = [*BATCHES[:batch], bytes(damaged), *BATCHES[batch + 1 :]]
        log = opened(directory(*batches))
        is_cut = log.end.offset < 8  # An epoch below zero is no epoch.
        if not is_cut and not log.epoch_problems:
            silent.append(bit)
    assert silent == []


LAST_IS_DATA = (*BATCHES[:-1], corrupt(BATCHES[-1], 5))
LAST_IS_LEADER_CHANGE = (*BATCHES[:-2], corrupt(BATCHES[-2], 5))
LAST_OF_THE_EPOCH_BEFORE = (*BATCHES[:-2], corrupt(BATCHES[-2], 3))


@pytest.mark.parametrize(
    ("batches", "epochs", "state_epoch", "expected"),
    [
        (LAST_IS_DATA, None, None, "(offset 7): epoch 5 begins here without a leader change"),
        (LAST_IS_DATA, None, 4, "(offset 7): the batch is of epoch 5, but quorum-state"),
        (LAST_IS_LEADER_CHANGE, EPOCHS, None, "has epoch 4 beginning here"),
        (LAST_IS_LEADER_CHANGE, None, 4, "has no epoch after 4"),
        (LAST_OF_THE_EPOCH_BEFORE, None, None, "(offset 6): a leader change begins no epoch here"),
        (BATCHES, (EPOCHS[0], EpochStart(3, 4), EPOCHS[2]), 4, "has epoch 3 beginning here"),
        (BATCHES, (EPOCHS[0], EPOCHS[2]), 4, "(offset 3): the batch is of epoch 3"),
        (BATCHES, (*EPOCHS[:2], EpochStart(4, 7)), 4, "(offset 7): the batch is of epoch 4"),
    ],
)
def test_each_piece_of_evidence_by_itself(
    batches: tuple[bytes, ...],
    epochs: tuple[EpochStart, ...] | None,
    state_epoch: int | None,
    expected: str,
) -> None:
    log = opened(directory(*batches, epochs=epochs, state_epoch=state_epoch))
    assert any(expected in problem for problem in log.epoch_problems), log.epoch_problems
    assert all(SEGMENT in problem and "position" in problem for problem in log.epoch_problems)
    assert log.damage is None
    assert set(log.epoch_problems) <= set(log.problems)


def test_what_no_evidence_can_tell() -> None:
    """The last leader change, where the file ends before it and the quorum has gone on."""
    log = opened(directory(*LAST_IS_LEADER_CHANGE, epochs=EPOCHS[:2], state_epoch=5))
    assert log.epoch_problems == ()


@pytest.mark.parametrize(
    "epochs",
    [None, (), EPOCHS[:1], (*EPOCHS, EpochStart(5, 8)), EPOCHS[1:]],
    ids=["missing", "empty", "older", "newer", "without-its-beginning"],
)
def test_a_crash_leaves_an_epoch_file_that_ends_elsewhere(
    epochs: tuple[EpochStart, ...] | None,
) -> None:
    assert opened(directory(*BATCHES, epochs=epochs)).epoch_problems == ()


@pytest.mark.parametrize("first", [EpochStart(1, 0), EpochStart(3, 4), EpochStart(3, 5)])
def test_a_trimmed_log_begins_anywhere_in_an_epoch(first: EpochStart) -> None:
    """Kafka moves its first entry up to a log start that may lie above the first segment's base."""
    fs = directory(*BATCHES[4:], start=4, epochs=(first, EPOCHS[2]))
    assert opened(fs).epoch_problems == ()


@pytest.mark.parametrize("first", [EpochStart(3, 4), EpochStart(3, 5)])
def test_a_stored_log_start_knows_the_epoch_before_it(first: EpochStart) -> None:
    """So the first batch is no change of epoch, and is of one all the same."""
    fs = directory(*BATCHES[4:], start=4, epochs=(first, EPOCHS[2]))
    LogStartFile(fs, HOME).save(LogStart(OffsetAndEpoch(4, 3)))
    assert opened(fs).epoch_problems == ()
    newer = directory(*BATCHES[4:], start=4, epochs=None, state_epoch=2)
    LogStartFile(newer, HOME).save(LogStart(OffsetAndEpoch(4, 3)))
    assert [
        "(offset 4): the batch is of epoch 3, but quorum-state has no epoch after 2" in each
        for each in opened(newer).epoch_problems
    ] == [True, False]


def test_a_log_start_above_an_empty_log_is_of_no_batch() -> None:
    fs = directory(start=4, epochs=None, state_epoch=2)
    LogStartFile(fs, HOME).save(LogStart(OffsetAndEpoch(4, 3)))
    assert opened(fs).epoch_problems == ()


def test_the_log_of_a_topic_has_no_leader_changes() -> None:
    """Nothing writes one there, so its epochs begin with data; a quorum's do not."""
    batches = [data(0, 1), data(1, 1), data(2, 3)]
    epochs = (EpochStart(1, 0), EpochStart(3, 2))
    assert opened(directory(*batches, epochs=epochs, state_epoch=None)).epoch_problems == ()
    of_quorum = opened(directory(*batches, epochs=epochs, state_epoch=3)).epoch_problems
    assert ["without a leader change" in each for each in of_quorum] == [True, True]
    corrupt_epochs = (EpochStart(1, 0), EpochStart(3, 1))
    problems = opened(directory(*batches, epochs=corrupt_epochs, state_epoch=None)).epoch_problems
    assert ["leader-epoch-checkpoint has epoch 3" in each for each in problems] == [True]


@pytest.mark.parametrize("left", range(len(BATCHES)))
def test_what_is_cut_while_it_is_read_is_no_contradiction(left: int) -> None:
    """The log was read whole; then its node cuts it, before the witnesses are asked."""
    fs = directory(*BATCHES)
    path = segment_path(HOME, 0)
    file = fs.open(path, writable=True)
    whole, tail = (
        scan_and_evaluate(file, path, SegmentTail(0, 0, 0, b""))[0],
        SegmentTail(0, 0, 0, b""),
    )
    segment = Segment(file, path, tail, whole.index, whole.tail)
    begun = {entry.start_offset: entry.epoch for entry in whole.epochs}
    file.truncate(sum(map(len, BATCHES[:left])) + 30)
    log_facts = LogFacts([segment], begun, whole.controls)
    assert list(epoch_problems(fs, HOME, log_facts)) == []
    fs.write_bytes(HOME / "quorum-state", b'{"leaderId":1,"leaderEpoch":3,"data_version":0}')
    assert len(list(epoch_problems(fs, HOME, log_facts))) == 1


def test_an_invalid_epoch_file_is_reported() -> None:
    fs = directory(*BATCHES)
    fs.write_bytes(HOME / "leader-epoch-checkpoint", b"0\n7\n1 0\n")
    assert ["malformed" in problem for problem in opened(fs).epoch_problems] == [True]


def test_a_log_digest_needs_no_further_evidence() -> None:
    fs = directory(*LAST_IS_DATA)
    watermarks = HighWatermarkFile(fs, HOME)
    watermarks.store_durably(Watermarks(8, 8))
    watermarks.close()
    assert opened(fs).epoch_problems == ()


def test_the_last_batch_of_a_real_controller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dumps and exports warn with the position, an import is refused; none warns if intact."""
    source = whole_sample(tmp_path)
    dump = ["log", "dump", "--no-records", "-o", "jsonl", str(source)]
    assert main(dump) == 0
    assert capsys.readouterr().err == ""
    open_source(source)

    path = source / PARTITION / SEGMENT
    content = bytearray(path.read_bytes())
    last = scan_batches(bytes(content))[-1]
    content[last.position + EPOCH_AT + 3] ^= 2
    path.write_bytes(content)

    assert main(dump) == 0
    place = f"position {last.position} (offset {last.base_offset}): epoch 3 begins here"
    assert place in capsys.readouterr().err
    assert main(["export", str(source), "--to", str(tmp_path / "export")]) == 0
    assert place in capsys.readouterr().err
    with pytest.raises(SourceDamagedError, match="without a leader change"):
        open_source(source)
