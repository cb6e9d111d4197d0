"""How a change and a look at the quorum are shown; a running cluster is asked in
tests/integration/test_cli_against_server.py.
"""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from quorate.cli.health import HealthReport
from quorate.cli.main import main
from quorate.cli.top import Sample, committed_per_s, view
from quorate.cli.top_view import screen
from quorate.cli.watch import change_lines, change_row, is_change
from quorate.client.results.metadata import AuditHeader, ChangeBatch
from quorate.client.results.records import ConfigRecord, NoOpRecord, TopicRecord, TypedRecord

REPORT = HealthReport(
    "c", 1, 7, 1000, 1,
    [
        {"node_id": 1, "role": "leader", "log_end_offset": 1000, "lag": None, "last_fetch": None,
         "address": "n1:9", "problem": ""},
        {"node_id": 2, "role": "voter", "log_end_offset": None, "lag": 5, "last_fetch": "0.3 s ago",
         "address": "n2:9", "problem": "connection refused"},
    ],
    has_answers=True,
)  # fmt: skip


def batch(*records: TypedRecord, **fields: object) -> ChangeBatch:
    return ChangeBatch(
        base_offset=3, end_offset=4, epoch=2, timestamp_ms=1_700_000_000_000,
        typed_records=records, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_change_says_what_by_whom_and_why() -> None:
    made = batch(
        TypedRecord(topic_record=TopicRecord(name="a\x1b[2J", topic_id=b"t" * 16)),
        TypedRecord(config_record=ConfigRecord(name="k", value="v")),
        TypedRecord(undecoded=b"\x01\xff"),
        headers=[
            AuditHeader(name="principal", value=b"User:x"),
            AuditHeader(name="reason", value="größer\n".encode()),
            AuditHeader(name="unknown", value=b"\xff"),
        ],
    )
    row = change_row(made)
    assert (row["base_offset"], row["epoch"], row["principal"]) == (3, 2, "User:x")
    assert row["records"][0]["type"] == "topic"
    assert row["records"][0]["topic_id"] == "dHR0dHR0dHR0dHR0dHR0dA"
    assert row["records"][2] == {"type": "unknown", "undecoded": "01ff"}
    lines = list(change_lines(row))
    assert lines[0] == "3  2023-11-14T22:13:20.000Z  User:x: größer\\n"
    assert lines[2] == "    config name=k value=v" or "value=v" in lines[2]
    assert "\x1b" not in "".join(lines)


def test_what_an_idle_leader_writes_is_no_change() -> None:
    idle = TypedRecord(no_op_record=NoOpRecord())
    assert not is_change(batch(idle))
    assert not is_change(batch(is_control=True))
    assert is_change(batch(idle, TypedRecord(config_record=ConfigRecord(name="k"))))


def test_a_rate_needs_two_looks_that_know_a_leader() -> None:
    first, later = Sample(10.0, REPORT), Sample(12.0, replace(REPORT, high_watermark=1500))
    unknown = Sample(11.0, replace(REPORT, high_watermark=-1))
    assert committed_per_s(first, later) == 250.0
    assert committed_per_s(None, later) is None
    assert committed_per_s(first, unknown) is committed_per_s(unknown, later) is None
    assert committed_per_s(later, first) == 0.0, "a node that is behind was asked"


def look_of(report: HealthReport, width: int) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=False)
    console.print(screen(view(None, Sample(1.0, report)), width))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    return lines


def test_a_look_on_a_terminal_has_one_line_for_each_node() -> None:
    lines = look_of(REPORT, 100)
    assert lines[0].startswith("c  NOT HEALTHY  leader 1 in epoch 7")
    assert [line.split()[0] for line in lines if line[:1].isdigit()] == ["1", "2"]
    assert any("connection refused" in line for line in lines)


def test_a_narrow_terminal_breaks_problems_alone() -> None:
    problem = "connection refused: nothing listens there; the leader has not heard from it yet"
    row = {**REPORT.rows[1], "address": "127.0.0.1:24010", "problem": problem}
    lines = look_of(replace(REPORT, rows=[REPORT.rows[0], row]), 80)
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["NODE_ID", "ROLE", "LAG", "LAST_FETCH", "ADDRESS", "PROBLEM"]
    (found,) = (line for line in table if line.startswith("2"))
    assert "127.0.0.1:24010  connection" in found
    at = found.index("connection")
    assert " ".join(line[at:] for line in table[table.index(found) :]) == problem


def test_without_a_leader_no_numbers_are_shown() -> None:
    unknown = replace(REPORT, leader_id=-1, leader_epoch=-1, high_watermark=-1, margin=None)
    assert look_of(unknown, 80)[0] == "c  NOT HEALTHY  no node leads"
    nobody = replace(unknown, cluster_id=None, has_answers=False)
    assert look_of(nobody, 80)[0] == "NOT HEALTHY  no node answers"


@pytest.mark.parametrize("command", ["watch", "top"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_has_no_end_is_no_document(
    capsys: pytest.CaptureFixture[str], command: str, form: str
) -> None:
    assert main([command, "-o", form, "--bootstrap", "127.0.0.1:1"]) == 2
    assert "-o jsonl" in capsys.readouterr().err
