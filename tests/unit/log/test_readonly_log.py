"""Reading directories that are not ours to touch."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from quorum.batch import scan_batches
from quorum.errors import QuorumUsageError
from quorum.log import readonly
from quorum.log.readonly import open_readonly
from quorum.types import ElectionState, EpochStart, OffsetAndEpoch, ReplicaKey
from tests.support.log_builder import HOME, LogBench, contents

SAMPLE = Path(__file__).parents[2] / "data" / "kafka-kraft-log" / f"{0:020d}.log"


@pytest.fixture
def kafka(tmp_path):
    """A controller's directory with the first batches of a real segment, laid out as Kafka does."""
    partition = tmp_path / "__cluster_metadata-0"
    partition.mkdir()
    shutil.copyfile(SAMPLE, partition / SAMPLE.name)
    (tmp_path / "meta.properties").write_text(
        "#\n#Fri Jan 30 16:43:51 UTC 2026\nnode.id=1\nversion=1\ncluster.id=q1w2e3r4t5y6u7i8o9p0\n"
    )
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    (partition / "quorum-state").write_text(
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    return tmp_path


def snapshot_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_real_controllers_directory_is_read_and_not_touched(kafka):
    before = snapshot_of(kafka)
    log = open_readonly(kafka)
    assert log.problems == []
    assert (log.identity.node_id, log.identity.cluster_id) == (1, "q1w2e3r4t5y6u7i8o9p0")
    assert log.election == ElectionState(epoch=1, leader_id=1)
    assert (log.start, log.end) == (OffsetAndEpoch(0, 0), OffsetAndEpoch(43, 1))
    assert log.epochs == (EpochStart(1, 0),)
    assert (log.batch_count, log.size_bytes) == (40, 3259)
    assert log.high_watermark is None
    assert b"".join(pieces(log, 300)) == SAMPLE.read_bytes()
    log.close()
    assert snapshot_of(kafka) == before


def pieces(log, max_bytes):
    offset = log.start.offset
    while data := log.read(offset, max_bytes):
        yield data
        offset = scan_batches(data)[-1].end_offset


def test_the_partition_directory_itself_may_be_named(kafka):
    log = open_readonly(kafka / "__cluster_metadata-0")
    assert log.end.offset == 43
    log.close()


def test_version_1_election_state_and_zeros_behind_an_index(kafka):
    partition = kafka / "__cluster_metadata-0"
    (partition / "quorum-state").write_text(
        '{"leaderId":-1,"leaderEpoch":2,"votedId":1,'
        '"votedDirectoryId":"XHhkr4tkSsD900pOQ8pPfg","data_version":1}'
    )
    first = scan_batches(SAMPLE.read_bytes())[20]
    entry = struct.pack(">ii", first.end_offset - 1, first.position)
    (partition / f"{0:020d}.index").write_bytes(entry + bytes(80))
    log = open_readonly(kafka, check_indexes=True)
    assert log.problems == []
    assert log.election.voted.id == 1
    assert isinstance(log.election.voted, ReplicaKey)
    log.close()
    (partition / f"{0:020d}.index").write_bytes(struct.pack(">ii", 7, first.position))
    log = open_readonly(kafka, check_indexes=True)
    assert ["offset 7 is not the end" in problem for problem in log.problems] == [True]
    log.close()


def test_what_is_wrong_is_described_and_the_rest_read(kafka):
    partition = kafka / "__cluster_metadata-0"
    (partition / SAMPLE.name).write_bytes(SAMPLE.read_bytes()[:2000])
    (partition / "quorum-state").write_text('{"data_version":9}')
    (partition / "partition.metadata").write_text("nonsense")
    (kafka / "meta.properties").unlink()
    log = open_readonly(kafka)
    assert 0 < log.end.offset < 43
    assert [
        any(word in problem for problem in log.problems)
        for word in ("not formatted", "data_version 9", "partition.metadata", "cut off")
    ] == [True] * 4
    with pytest.raises(QuorumUsageError, match="below log start"):
        log.read(-1, 10)
    log.close()


@pytest.mark.parametrize("flipped", [9, 800, 3000])
def test_a_bad_batch_before_a_valid_one_is_damage(kafka, flipped):
    path = kafka / "__cluster_metadata-0" / SAMPLE.name
    data = bytearray(path.read_bytes())
    data[flipped] ^= 0x10
    path.write_bytes(data)
    log = open_readonly(kafka)
    log.close()
    assert str(log.damage) in log.problems
    assert f"(offset {log.end.offset})" in str(log.damage)
    assert "a valid batch" in str(log.damage)
    assert path.name in str(log.damage)


def test_a_torn_tail_is_none(kafka):
    path = kafka / "__cluster_metadata-0" / SAMPLE.name
    path.write_bytes(SAMPLE.read_bytes() + SAMPLE.read_bytes()[:70] + bytes(4096))
    log = open_readonly(kafka)
    log.close()
    assert (log.end.offset, log.damage, len(log.problems)) == (43, None, 1)


def test_a_missing_segment_is_damage():
    bench = LogBench(segment_bytes=600, index_interval_bytes=150)
    for _ in range(9):
        bench.fill(1, 2)
    bases = bench.log.segment_bases
    assert len(bases) > 2
    bench.fs.unlink(HOME / f"{bases[1]:020d}.log")
    log = open_readonly(HOME.parent, bench.fs)
    log.close()
    assert log.damage.offset == log.end.offset == bases[1]


def test_a_tail_below_the_stored_durable_end_is_damage():
    bench = LogBench(segment_bytes=100_000)
    for _ in range(9):
        bench.fill(1, 2)
    bench.log.flush()
    bench.log.store_high_watermark(2)
    path = HOME / f"{0:020d}.log"
    bench.fs.open(path, writable=True).truncate(len(bench.fs.read_bytes(path)) - 3)
    log = open_readonly(HOME.parent, bench.fs)
    log.close()
    assert "the log was on disk up to offset 18" in str(log.damage)


@pytest.mark.interpreted
def test_what_is_being_appended_is_no_damage(kafka, monkeypatch):
    """The first look ends inside a batch; by the time it is evaluated, more has been written."""
    path = kafka / "__cluster_metadata-0" / SAMPLE.name
    whole = SAMPLE.read_bytes()
    path.write_bytes(whole[:2000])
    evaluated = []

    def evaluate_later(problem, *rest, **facts):
        path.write_bytes(whole)
        evaluated.append(original(problem, *rest, **facts))
        return evaluated[-1]

    original = readonly.evaluate
    monkeypatch.setattr(readonly, "evaluate", evaluate_later)
    log = open_readonly(kafka)
    log.close()
    assert (log.end.offset, log.damage, log.problems) == (43, None, [])
    assert [found is not None for found in evaluated] == [True]


def test_an_empty_directory_is_a_problem_not_an_error(tmp_path):
    log = open_readonly(tmp_path)
    assert log.end == OffsetAndEpoch(0, 0)
    assert log.read(0, 100) == b""
    assert any("no log segments" in problem for problem in log.problems)
    log.close()


def test_our_own_directory_is_read_while_in_use():
    bench = LogBench(segment_bytes=600, index_interval_bytes=150)
    for epoch in (1, 1, 2, 2, 3, 3, 3):
        bench.fill(epoch, 2)
    bench.log.store_high_watermark(9)
    bench.log.advance_start(OffsetAndEpoch(6, 2))
    changes = bench.fs.change_count
    log = open_readonly(HOME.parent, bench.fs, check_indexes=True)
    assert bench.fs.change_count == changes
    assert [problem for problem in log.problems if "formatted" not in problem] == []
    assert (log.start, log.end, log.high_watermark) == (OffsetAndEpoch(6, 2), bench.log.end, 9)
    assert log.epochs == bench.log.epochs
    assert contents(log) == contents(bench.log)
    log.close()


def test_our_index_files_are_kafkas(tmp_path):
    """Every entry names the last offset of a batch and where that batch starts."""
    bench = LogBench(segment_bytes=100_000, index_interval_bytes=4096)
    bench.fill(1, 900)
    bench.fill(1, 900)
    data = bench.fs.read_bytes(HOME / f"{0:020d}.index")
    headers = {
        header.end_offset - 1: header.position
        for header in scan_batches(bench.fs.read_bytes(HOME / f"{0:020d}.log"))
    }
    entries = list(struct.iter_unpack(">ii", data))
    assert len(entries) > 15
    for before, after in zip([(0, 0), *entries], entries):
        assert headers[after[0]] == after[1]
        assert after[1] - before[1] > 4096
