"""Options of the Spark source are checked, and a stream's position is proven against the log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from audit.errors import AuditError, LogTruncatedError
from audit.export import export_log
from audit.lineage import EPOCHS_MAX, epochs_below
from audit.plan import CheckpointFile, ReadPlan
from audit.position import check_position
from audit.source import ClusterMetadataSource
from audit.source_reader import Question
from audit.source_stream import HistoryStream
from quorum.errors import LogDamagedError
from quorum.log_position import EpochEntry, LogPosition
from quorum.types import EpochStart, OffsetAndEpoch
from statemachine.records import ConfigRecord
from tests.support.audit_log import AuditLog
from tests.support.damaged_logs import damage

NO_SCHEMA = StructType([])


def source(**options: str) -> ClusterMetadataSource:
    return ClusterMetadataSource(CaseInsensitiveDict(options))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tabel": "history"}, "unknown option tabel"),
        ({"table": "nodes"}, "no table 'nodes'"),
        ({}, "option path is missing"),
        ({"path": "p", "startOffset": "-1"}, "'-1', expected a number"),
        ({"path": "p", "uncommitted": "yes"}, "true or false"),
        ({"path": "LOG", "asOfOffset": "1"}, "needs a typed table"),
        ({"path": "LOG", "asOfOffset": "1", "endOffset": "2", "table": "topics"}, "excludes"),
        (
            {"path": "LOG", "columns": "offset,tpoic"},
            "history has no column tpoic; there are offset,",
        ),
        ({"path": "LOG", "minPartitions": "0"}, "expected at least 1"),
        ({"path": "LOG", "minPartitions": "few"}, "'few', expected a number"),
        ({"path": "LOG", "types": "TopicRecrod"}, "unknown record type TopicRecrod"),
        (
            {"path": "LOG", "types": "TopicRecord", "table": "topics"},
            "only available for table history",
        ),
    ],
)
def test_a_bad_option_is_named(options: dict[str, str], problem: str, tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    log.commit()
    given = {name: str(tmp_path) if value == "LOG" else value for name, value in options.items()}
    with pytest.raises(AuditError, match=problem):
        source(**given).reader(NO_SCHEMA)


@pytest.mark.parametrize("path", ["file://{}", "file:{}", "FILE://localhost{}", "{}"])
def test_a_path_may_be_a_uri_of_this_machine(path: str, tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "my node")
    log.elect(1)
    log.commit()
    assert source(path=path.format(log.home)).reader(NO_SCHEMA).partitions()
    encoded = str(log.home).replace(" ", "%20")
    assert source(path=f"file://{encoded}").reader(NO_SCHEMA).partitions()


@pytest.mark.parametrize("path", ["s3a://b/x", "hdfs://n/x", "file://other/x"])
def test_a_path_of_another_file_system_is_refused(path: str) -> None:
    for read in (source(path=path).reader, source(path=path).streamReader):
        with pytest.raises(AuditError, match=f"{path}: only files of the machines are read"):
            read(NO_SCHEMA)


def test_an_export_is_not_read_as_a_log(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.commit()
    export_log(log.home, tmp_path / "out")
    for read in (
        source(path=f"{tmp_path}/out").reader,
        source(path=f"{tmp_path}/out").streamReader,
    ):
        with pytest.raises(AuditError, match="it is an export, which register_views"):
            read(NO_SCHEMA)


@pytest.mark.parametrize("option", ["asOfOffset", "endOffset", "uncommitted"])
def test_a_stream_refuses_what_it_cannot_have(option: str) -> None:
    with pytest.raises(AuditError, match=f"option {option} is not available for streams"):
        source(path="p", **{option: "1"}).streamReader(NO_SCHEMA)


def test_a_micro_batch_of_nothing_is_refused() -> None:
    with pytest.raises(AuditError, match="maxOffsetsPerTrigger is 0, expected at least 1"):
        source(path="p", maxOffsetsPerTrigger="0").streamReader(NO_SCHEMA)


@pytest.mark.parametrize("table", ["history", "topics"])
@pytest.mark.parametrize(
    "options",
    [{"startOffset": "END"}, {"startOffset": "500"}, {"startOffset": "9", "endOffset": "3"}],
)
def test_an_empty_range_has_no_rows(table: str, options: dict[str, str], tmp_path: Path) -> None:
    """Spark makes a partition without a value if it gets none, and reads it."""
    log = AuditLog(tmp_path)
    log.elect(1)
    log.world(1, 20)
    log.commit()
    given = {name: value.replace("END", str(log.end)) for name, value in options.items()}
    reader = source(path=str(tmp_path), table=table, **given).reader(NO_SCHEMA)
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []
    with pytest.raises(TypeError, match="not one of our partitions"):
        list(reader.read(InputPartition(5)))
    stream = source(path=str(tmp_path)).streamReader(NO_SCHEMA)
    assert list(stream.read(InputPartition(None))) == []


def test_a_damaged_log_ends_a_query_and_a_stream(tmp_path: Path) -> None:
    """Also where no high watermark shows that records are missing."""
    log = AuditLog(tmp_path)
    log.elect(1, voters=(1,))
    log.world(1, 20)
    log.commit()
    damage(log)
    with pytest.raises(LogDamagedError, match="valid batch"):
        source(path=str(tmp_path)).reader(NO_SCHEMA)
    stream = source(path=str(tmp_path)).streamReader(NO_SCHEMA)
    assert isinstance(stream, HistoryStream)
    with pytest.raises(LogDamagedError, match="valid batch"):
        stream.latestOffset({"offset": 0, "epoch": 0}, ReadAllAvailable())


def test_options_ignore_case(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, segment_bytes=400)
    log.elect(1)
    log.world(1, 20)
    log.commit()
    reader = source(path=str(tmp_path), STARTOFFSET="3", endoffset="7").reader(NO_SCHEMA)
    offsets = [
        offset
        for part in reader.partitions()
        for batch in reader.read(part)
        for offset in batch.column("offset").to_pylist()
    ]
    assert sorted(set(offsets)) == [3, 4, 5, 6]


def test_the_end_is_frozen_when_planning(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    world = log.world(1, 5)
    end = log.commit()
    reader = source(path=str(tmp_path)).reader(NO_SCHEMA)
    log.more(world, 5)
    log.commit()
    offsets = [
        offset
        for part in reader.partitions()
        for batch in reader.read(part)
        for offset in batch.column("offset").to_pylist()
    ]
    assert max(offsets) == end - 1


def plan(*epochs: tuple[int, int], start: int = 0, end: int = 100) -> ReadPlan:
    checkpoints = (CheckpointFile("c", OffsetAndEpoch(start, 1)),) if start else ()
    return ReadPlan(
        "log",
        start_offset=start,
        end_offset=end,
        epochs=tuple(EpochStart(*entry) for entry in epochs),
        checkpoints=checkpoints,
    )


@pytest.mark.parametrize(
    ("found", "offset", "epoch", "epochs"),
    [
        (plan((1, 0), (2, 50)), 0, 0, {0, 1, 2, 3}),
        (plan((1, 0), (2, 50)), 50, 1, {1}),
        (plan((1, 0), (2, 50)), 51, 2, {2}),
        (plan((1, 0), (2, 50)), 120, 2, {2, 3}),
        (plan((2, 10), start=10), 10, 1, {0, 1}),
    ],
)
def test_a_position_of_this_log_passes(
    found: ReadPlan, offset: int, epoch: int, epochs: set[int]
) -> None:
    """Of all epochs up to 3 that the record before it might have been read under, only these."""

    def passes(read_under: int) -> bool:
        try:
            check_position(found, LogPosition(offset, read_under))
        except LogTruncatedError:
            return False
        return True

    assert passes(epoch)
    assert {each for each in range(4) if passes(each)} == epochs


@pytest.mark.parametrize(
    ("found", "offset", "epoch", "divergent"),
    [
        (plan((1, 0), (3, 50)), 60, 1, 50),
        (plan((1, 0), (3, 50)), 60, 2, 50),
        (plan((1, 0), (3, 50), end=55), 60, 1, 50),
        (plan((1, 0)), 60, 2, 59),
    ],
)
def test_a_diverging_position_is_refused_with_the_divergence_point(
    found: ReadPlan, offset: int, epoch: int, divergent: int
) -> None:
    with pytest.raises(LogTruncatedError, match="LOG_TRUNCATED") as caught:
        check_position(found, LogPosition(offset, epoch))
    assert caught.value.offset == divergent


@pytest.mark.parametrize("offset", [16, 21, 25])
def test_known_epochs_give_a_stream_the_exact_divergence_offset(offset: int) -> None:
    """KIP-279, scenario 1: read e1[0,11) e2[11,...), the log now e1[0,21) e3[21,...)."""
    found = plan((1, 0), (3, 21), end=31)
    with pytest.raises(LogTruncatedError, match="offset is 11 ") as caught:
        check_position(found, LogPosition(offset, 2, (EpochEntry(1, 0), EpochEntry(2, 11))))
    assert (caught.value.offset, caught.value.is_exact) == (11, True)
    with pytest.raises(LogTruncatedError, match=f"is at most {min(offset - 1, 21)} ") as caught:
        check_position(found, LogPosition(offset, 2))
    assert not caught.value.is_exact


def test_a_streams_position_keeps_its_epochs_over_a_trimmed_log() -> None:
    """The log start is inside epoch 2; only the position knows where that epoch begins."""
    known = (EpochEntry(1, 0), EpochEntry(2, 11))
    log = (EpochStart(2, 20), EpochStart(3, 30), EpochStart(4, 50))
    assert epochs_below(known, log, 40) == (*known, EpochEntry(3, 30))
    many = [EpochStart(epoch, epoch * 2) for epoch in range(1, 300)]
    kept = epochs_below((), many, 600)
    assert (len(kept), kept[-1]) == (EPOCHS_MAX, EpochEntry(299, 598))


def test_a_position_below_the_log_start_is_not_skipped_over() -> None:
    with pytest.raises(AuditError, match="were trimmed before"):
        check_position(plan((2, 10), start=10), LogPosition(5, 1))


def test_micro_batches_cover_the_log_once_in_whole_batches(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, segment_bytes=700)
    log.elect(1)
    log.world(4, 40)
    log.commit()
    stream = HistoryStream(str(tmp_path), Question("history"), None, 10)
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    position = stream.initialOffset()
    offsets: list[int] = []
    steps = 0
    while (end := stream.latestOffset(position, limit)) != position:
        assert end["offset"] in log.images
        for part in stream.partitions(position, end):
            for batch in stream.read(part):
                rows = batch.to_pylist()
                offsets += [row["offset"] for row in rows if row["change_index"] == 0]
        position = end
        steps += 1
    assert offsets == list(range(log.end))
    assert steps > 3
    assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable())["offset"] == log.end


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_stream_is_compared_by_digest_where_epochs_prove_nothing(
    is_kept: bool, tmp_path: Path
) -> None:
    """Two logs with the same epochs and offsets; below ``cut`` they are the same."""
    for name, value in (("read", "1"), ("there", "1" if is_kept else "2")):
        log = AuditLog(tmp_path / name)
        log.elect(1)
        cut = log.elect(2)
        log.command(ConfigRecord(4, "", "a", value))
        log.elect(3)
        log.commit()
    stream = HistoryStream(str(tmp_path / "read"), Question("history"), None, None)
    position = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    kept = LogPosition.from_dict(json.loads(json.dumps(position)))
    assert kept.log_digest == log.log.digest_at(log.end) or not is_kept
    assert [entry.log_digest for entry in kept.epochs][1] == log.log.digest_at(
        kept.epochs[1].start_offset
    )
    other = HistoryStream(str(tmp_path / "there"), Question("history"), None, None)
    if is_kept:
        assert other.latestOffset(position, ReadAllAvailable()) == position
        return
    start = kept.epochs[2].start_offset
    with pytest.raises(LogTruncatedError, match=f"is at most {start} ") as caught:
        other.latestOffset(position, ReadAllAvailable())
    assert cut <= caught.value.offset


def test_available_now_stops_where_the_log_ended(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.elect(1)
    world = log.world(4, 10)
    end = log.commit()
    stream = HistoryStream(str(tmp_path), Question("history"), None, None)
    stream.prepareForTriggerAvailableNow()
    log.more(world, 10)
    log.commit()
    assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable())["offset"] == end
