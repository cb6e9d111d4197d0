"""The report counts what happened in a log of known events; its page runs no foreign code."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from audit.database import database_of_export, database_of_log
from audit.directory import plan_source
from audit.export import export_log
from audit.report import TABLES_READ, ChartKind, Section, covered, make_report
from quorate.cli.main import main
from quorate.cli.report_chart import chart
from quorate.cli.report_page import page
from statemachine.records import (
    BrokerFencedEvent,
    BrokerUnfencedEvent,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.audit_answers import trimmed_log
from tests.support.audit_log import AuditLog

TOPIC_ID = bytes(range(16))
ODD = "<script>$x\u202e"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    """A record's time in milliseconds is that of the first plus its offset."""
    log = AuditLog(tmp_path_factory.mktemp("logs") / "node")
    log.elect(1)
    for broker in (1, 2):
        log.command(RegisterBrokerRecord(broker, broker_epoch=broker, fenced=False))
    log.command(
        TopicRecord("orders", TOPIC_ID),
        PartitionRecord(0, TOPIC_ID, (1, 2), (1, 2), leader=1, leader_epoch=0, partition_epoch=0),
        principal="User:alice",
    )
    log.command(ConfigRecord(2, "orders", "retention.ms", "1"), principal=ODD)
    log.command(ConfigRecord(2, "orders", "retention.ms", "2"), principal="User:bob")
    log.command(ConfigRecord(2, "orders", "segment.ms", "5"), principal="User:bob")
    log.command(ConfigRecord(2, "orders", "segment.ms", None), principal="User:bob")
    log.command(BrokerFencedEvent(1, 1), principal="User:controller")  # offset 9: leader 2
    log.command(BrokerUnfencedEvent(1, 1), principal="User:controller")
    log.command(PartitionChangeRecord(0, TOPIC_ID, isr=(2, 1)), principal="User:controller")
    log.command(BrokerFencedEvent(2, 2), principal="User:controller")  # offset 12: leader 1
    log.command(
        PartitionChangeRecord(0, TOPIC_ID, isr=(1,), leader=-1), principal="User:controller"
    )
    log.commit()
    return log


@pytest.fixture(params=["log", "export"])
def sections(request: pytest.FixtureRequest, log: AuditLog, tmp_path: Path) -> dict[str, Section]:
    if request.param == "log":
        with database_of_log(plan_source(log.home), TABLES_READ) as database:
            return {section.name: section for section in make_report(database)}
    export_log(log.home, tmp_path / "out")
    with database_of_export(tmp_path / "out") as database:
        return {section.name: section for section in make_report(database)}


def shown(rows: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_leadership_changes_are_counted(sections: dict[str, Section]) -> None:
    found = sections["leadership"]
    assert found.total == 3
    assert shown(found.rows, "topic", "partition", "changes", "without_leader") == [
        ("orders", 0, 3, 1)
    ]
    assert shown(found.chart_rows, "new_leader", "without_leader") == [(2, 1)]


def test_records_are_counted_by_principal(sections: dict[str, Section]) -> None:
    found = sections["principals"]
    assert found.total == 13
    assert shown(found.rows, "principal", "records", "requests") == [
        ("User:controller", 5, 5),
        ("User:bob", 3, 3),
        ("(not recorded)", 2, 2),
        ("User:alice", 2, 1),
        (ODD, 1, 1),
    ]


def test_a_setting_that_came_back_has_not_drifted(sections: dict[str, Section]) -> None:
    found = sections["configs"]
    names = ("config_name", "changes", "value_before", "value_now", "last_principal")
    assert shown(found.rows, *names) == [("retention.ms", 2, None, "2", "User:bob")]
    assert (found.total, shown(found.chart_rows, "config_name", "settings")) == (
        1,
        [("retention.ms", 1)],
    )


def test_isr_changes_and_the_time_with_too_few(sections: dict[str, Section]) -> None:
    found = sections["isr"]
    assert found.total == 2
    names = ("topic", "partition", "shrinks", "expansions", "seconds_below")
    (row,) = shown(found.rows, *names)
    assert row[:4] == ("orders", 0, 2, 1)
    assert row[4] == pytest.approx(0.003)


def test_how_long_brokers_were_fenced(sections: dict[str, Section]) -> None:
    found = sections["fencing"]
    assert found.total == 1
    assert [row["seconds"] for row in found.chart_rows] == [pytest.approx(0.001)]
    by_broker = {row["broker_id"]: row for row in found.rows}
    assert (by_broker[1]["times"], by_broker[1]["still_fenced"]) == (1, False)
    assert (by_broker[2]["times"], by_broker[2]["still_fenced"]) == (0, True)


def test_a_report_as_of_an_offset_leaves_out_the_rest(log: AuditLog) -> None:
    as_of = 9
    with database_of_log(plan_source(log.home), TABLES_READ, as_of=as_of) as database:
        found = {section.name: section.total for section in make_report(database, as_of)}
    assert found == {"leadership": 0, "principals": 8, "configs": 1, "isr": 0, "fencing": 0}


def test_names_of_others_are_shown_and_do_nothing(sections: dict[str, Section]) -> None:
    text = page("/srv/<b>", 14, [*sections.values()])
    assert "<script>" not in text
    assert "\u202e" not in text
    assert html.escape("<script>$x\\u202e") in text
    assert "/srv/&lt;b&gt;" in text
    assert text.count("<svg") == 5
    assert page("/srv/<b>", 14, [*sections.values()]) == text
    addresses = set(re.findall(r"https?://[^/]+", text))
    # Names of the XML vocabularies of SVG, which nothing loads.
    assert addresses <= {"http://www.w3.org", "http://purl.org", "http://creativecommons.org"}


def test_a_section_without_anything_has_no_chart() -> None:
    empty = Section("isr", "ISR", "What.", 0, "shrinks", ChartKind.OVER_TIME, [], [])
    text = page("log", 0, [empty])
    assert "<svg" not in text
    assert "<strong>0</strong> shrinks" in text
    assert "Nothing of this kind happened up to this offset." in text


def test_the_page_says_what_each_chart_means_and_in_which_units(
    sections: dict[str, Section],
) -> None:
    text = page("log", 14, [*sections.values()])
    for section in sections.values():
        assert f'href="#{section.name}"' in text
        assert html.escape(section.reading) in text
        assert html.escape(section.order) in text
    assert {section.unit for section in sections.values()} == {"", "minute"}
    for label in ("changes per minute", "time (UTC)", "seconds", "times unfenced", "records"):
        assert f">{label}</text>" in text


def test_charts_have_the_colours_of_the_page(sections: dict[str, Section]) -> None:
    """Black text on a dark page, or a white ground, would be hard to read there."""
    for section in sections.values():
        drawn = chart(section)
        assert "currentColor" in drawn
        used = set(re.findall(r"#[0-9a-f]{6}", drawn))
        assert used <= {"#3f7fbf", "#c8651b"}, (section.name, used)


@pytest.mark.parametrize("seconds", [[0.0], [0.0, 0.0], [1.5, 90_000.0]])
def test_a_histogram_begins_at_zero(seconds: list[float]) -> None:
    rows = [{"seconds": value} for value in seconds]
    drawn = chart(Section("f", "F", "", len(rows), "times", ChartKind.HISTOGRAM, rows, []))
    assert "\u2212" not in drawn  # the minus sign of matplotlib


def test_long_names_are_cut_in_a_chart_and_whole_in_the_table() -> None:
    names = [f"User:{'x' * 300}-{number}" for number in range(2)]
    rows = [{"principal": name, "records": 1_234_567} for name in names]
    section = Section("principals", "P", "", 2, "records", ChartKind.BARS, rows, rows)
    drawn = chart(section)
    assert drawn.count(f"User:{'x' * 34}\u2026</text>") == 2
    assert drawn.count(">1,234,567</text>") == 2
    text = page("log", 0, [section])
    assert all(name in text for name in names)
    assert '<td class="number">1,234,567</td>' in text


def test_the_times_that_a_report_covers(log: AuditLog) -> None:
    with database_of_log(plan_source(log.home), TABLES_READ) as database:
        span = covered(database)
        assert span is not None
        assert covered(database, 0) is None
    assert (span[1] - span[0]).total_seconds() == pytest.approx(0.013, abs=0.003)
    text = page("log", 14, [], span)
    assert "records from 2023-11-14 22:13:20 to 2023-11-14 22:13:20" in text


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = trimmed_log(tmp_path / "node")
    target = tmp_path / "report.html"
    asked = ["audit", "report", "--log", str(log.home)]
    assert main(["-o", "json", *asked, "--to", str(target)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["as_of_offset"]) == ("AuditReport", log.end)
    totals = {row["section"]: row["total"] for row in answer["rows"]}
    assert [*totals] == ["leadership", "principals", "configs", "isr", "fencing"]
    assert all(total > 0 for total in totals.values())
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main([*asked, "--to", str(tmp_path / "no" / "r.html")]) == 2
    assert "cannot write the report" in capsys.readouterr().err
