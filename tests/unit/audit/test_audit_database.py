"""DuckDB answers the audit questions as a replay does; queries of one's own change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from audit import questions
from audit.database import AuditDatabase, database_of_export, database_of_log, tables_named
from audit.directory import plan_source
from audit.errors import AuditError, QueryError
from audit.export import export_log
from audit.schema import TABLES, TYPED_TABLES
from quorum.control_records import Origin
from tests.support.audit_answers import trimmed_log, turns_by_replay
from tests.support.audit_log import AuditLog, expected_states, ordered


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return trimmed_log(tmp_path_factory.mktemp("logs") / "node")


@pytest.fixture(scope="module")
def export(log: AuditLog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("it's an export") / "out"
    export_log(log.home, target, rows_per_file=60)
    return target


@contextmanager
def opened(kind: str, log: AuditLog, export: Path, as_of: int) -> Iterator[AuditDatabase]:
    if kind == "export":
        with database_of_export(export, as_of=as_of) as database:
            yield database
    else:
        with database_of_log(plan_source(log.home), as_of=as_of) as database:
            yield database


@pytest.fixture(params=["export", "log"])
def database(
    request: pytest.FixtureRequest, log: AuditLog, export: Path
) -> Iterator[AuditDatabase]:
    with opened(request.param, log, export, questions.LATEST) as database:
        yield database


def offsets(log: AuditLog) -> list[int]:
    start = plan_source(log.home).start_offset
    return [start, sorted(end for end in log.images if end > start)[25], log.end]


def test_every_state_equals_replay(log: AuditLog, database: AuditDatabase) -> None:
    for as_of in offsets(log):
        for table in TYPED_TABLES:
            expected = expected_states(log.image_at(as_of), table)
            found = database.ask(questions.state_as_of(table, as_of)).to_pylist()
            names = [*expected[0]] if expected else []
            found = [{name: row[name] for name in names} for row in found]
            assert ordered(found, table) == expected


def test_the_leadership_timeline_equals_replay(log: AuditLog, database: AuditDatabase) -> None:
    rows = database.ask(questions.leadership_timeline()).to_pylist()
    names = ("topic_id", "partition", "leader", "leader_epoch", "from_offset", "until_offset")
    found = [tuple(row[name] for name in names) for row in rows]
    expected = turns_by_replay(log, plan_source(log.home).start_offset)
    assert sorted(found, key=str) == sorted(expected, key=str)
    one = database.ask(questions.leadership_timeline(topic="led-by-one")).to_pylist()
    assert one == [row for row in rows if row["topic"] == "led-by-one"]
    assert (one[1]["leader"], one[1]["cause"], one[1]["is_derived"]) == (
        0,
        "BrokerFencedEvent",
        True,
    )
    assert (one[1]["principal"], one[1]["reason"]) == ("User:controller", "no heartbeat")


def test_config_changes_have_principal_old_and_new_value(
    log: AuditLog, database: AuditDatabase
) -> None:
    rows = database.ask(questions.config_changes()).to_pylist()
    values: dict[tuple[str, ...], str | None] = {}
    assert len(rows) > 5
    for row in rows:
        key = (row["resource_type"], row["resource_name"], row["config_name"])
        if key in values:
            assert row["old_value"] == values[key]
        values[key] = row["value"]
        assert row["principal"].startswith("User:")
        assert row["reason"].startswith("step")
    topic = next(row["resource_name"] for row in rows if row["resource_type"] == "topic")
    only = database.ask(questions.config_changes(topic=topic)).to_pylist()
    assert only == [
        row for row in rows if (row["resource_type"], row["resource_name"]) == ("topic", topic)
    ]


def quorum_log(home: Path) -> AuditLog:
    """Voters 1 and 2, then 3; then node 2 leads on request, and in the end nobody asked."""
    log = AuditLog(home)
    log.elect(1, voters=(1, 2))
    log.voters(1, 2)
    log.voters(1, 2, 3, origin=Origin("User:ann", "third voter"))
    log.elect(2, leader=2, origin=Origin("User:bob", "rack work"))
    log.elect(4, leader=3)
    log.voters(1, 3, origin=Origin("", "self registration of node 2"))
    log.commit()
    return log


@pytest.mark.parametrize("kind", ["export", "log"])
def test_changes_of_the_quorum_have_who_and_why(kind: str, tmp_path: Path) -> None:
    log = quorum_log(tmp_path / "node")
    export_log(log.home, tmp_path / "out")
    with opened(kind, log, tmp_path / "out", questions.LATEST) as database:
        rows = database.ask(questions.quorum_changes()).to_pylist()
        history = database.ask_sql(
            "SELECT principal, reason FROM history WHERE record_type = 'Voters'"
        ).to_pylist()
    names = ("epoch", "leader_before", "leader", "voters_before", "voters", "principal", "reason")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, None, 1, None, None, None, None),
        (1, None, None, None, ["1", "2"], None, None),
        (1, None, None, ["1", "2"], ["1", "2", "3"], "User:ann", "third voter"),
        (2, 1, 2, None, None, "User:bob", "rack work"),
        (4, 2, 3, None, None, None, None),
        (4, None, None, ["1", "2", "3"], ["1", "3"], None, "self registration of node 2"),
    ]
    assert {"principal": "User:ann", "reason": "third voter"} in history


def test_a_question_about_the_quorum_decodes_no_data(tmp_path: Path, monkeypatch: Any) -> None:
    """Goal: seconds less per hundred thousand records. Method: no data record can be decoded."""
    log = quorum_log(tmp_path / "node")
    log.world(1, 20)
    log.checkpoint()
    log.commit()
    plan, query = plan_source(log.home), questions.quorum_changes()
    with database_of_log(plan, query.tables) as database:
        expected = database.ask(query)

    def decode(value: bytes) -> None:
        raise AssertionError(f"decoded {value!r}")

    monkeypatch.setattr("audit.scan.decode_record", decode)
    cache = tmp_path / "cache"
    with database_of_log(plan, query.tables, types=query.types, cache=cache) as database:
        assert database.ask(query) == expected
    assert expected.num_rows > 2
    with pytest.raises(AssertionError, match="decoded"), database_of_log(plan, query.tables):
        pass


@pytest.mark.parametrize("kind", ["export", "log"])
def test_tables_and_views_stand_by_their_names(kind: str, log: AuditLog, export: Path) -> None:
    as_of = offsets(log)[1]
    with opened(kind, log, export, as_of) as database:
        names = {row["name"] for row in database.ask_sql("SHOW TABLES").to_pylist()}
        assert names == {*TABLES, "baselines", *(name for name, _ in questions.views())}
        assert database.ask_sql('SELECT max("offset") AS m FROM history')["m"][0].as_py() + 1 == (
            log.end
        )
        for name, query in questions.views(as_of):
            assert database.ask_sql(f"FROM {name}").to_pylist() == database.ask(query).to_pylist()


def test_a_query_names_the_tables_it_needs(log: AuditLog) -> None:
    assert tables_named("select * from Leaders join CONFIGS using (x)") == {"partitions", "configs"}
    assert tables_named("from brokers_state") == {"brokers"}
    assert tables_named("select 1") == set()
    needed = tables_named("from topics_state")
    with database_of_log(plan_source(log.home), needed) as database:
        names = {row["name"] for row in database.ask_sql("SHOW TABLES").to_pylist()}
        assert names == {"baselines", "topics", "topics_state"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected one SELECT"),
        ("SELECT 1; SELECT 2", "expected one SELECT"),
        ("DELETE FROM history", "nothing else is run"),
        ("DROP VIEW history", "nothing else is run"),
        ("COPY history TO 'x.parquet'", "nothing else is run"),
        ("ATTACH 'x.db'", "nothing else is run"),
        ("SET enable_external_access = true", "nothing else is run"),
        ("INSTALL httpfs", "nothing else is run"),
        ("SELECT offset FROM history", "the column offset needs double quotes"),
        ("SELECT * FROM histroy", 'Did you mean "history"'),
        ("SELECT pricipal FROM history", "principal"),
        ("SELECT * FROM read_text('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM '/etc/passwd'", "."),
        ("SELECT * FROM 'https://127.0.0.1:1/x.parquet'", "."),
        ("SELECT * FROM secret", "secret does not exist"),
        ("SELECT 1 / 'x'", "Could not convert"),
    ],
)
def test_a_query_can_read_its_tables_and_nothing_else(
    text: str, problem: str, database: AuditDatabase
) -> None:
    secret = [{"a": 1}]  # a Python variable is no table
    with pytest.raises(QueryError, match=problem):
        database.ask_sql(text)
    assert secret


def test_files_beside_the_exported_ones_are_not_read(export: Path) -> None:
    other = export.parent / "other.parquet"
    history = next((export / "history").glob("0*.parquet"))
    other.write_bytes(history.read_bytes())
    text = str(other).replace("'", "''")
    with database_of_export(export) as database:
        assert database.ask_sql("SELECT count(*) FROM history").num_rows == 1
        with pytest.raises(QueryError, match="disabled by configuration"):
            database.ask_sql(f"SELECT * FROM '{text}'")


def test_a_folder_without_an_export_says_so(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="contains no export"), database_of_export(tmp_path):
        pass


def test_without_duckdb_the_extra_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    log = AuditLog(tmp_path / "n")
    log.elect(1)
    log.commit()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with (
        pytest.raises(AuditError, match=r"pip install 'quorate\[parquet\]'"),
        database_of_log(plan_source(log.home)),
    ):
        pass
