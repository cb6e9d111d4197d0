"""A principal without a name is words for people, and the recorded text for programs."""

from __future__ import annotations

import io
import json

import pytest

from quorate.cli.output import Result, render
from quorate.cli.report_chart import _short
from quorate.cli.report_page import _shown
from quorate.cli.watch import change_lines
from quorate.principal_text import principal_text
from quorate.services.identity import UNAUTHENTICATED_PREFIX, principal_of

WORDS = "unauthenticated (no client id)"


def test_only_a_principal_without_a_name_is_replaced() -> None:
    assert principal_text(principal_of({}, "")) == WORDS
    for each in ("unauthenticated:app", "tls:app", "scram:app", ""):
        assert principal_text(each) == each


@pytest.mark.parametrize("column", ["principal", "last_principal"])
def test_a_table_has_the_words_and_a_document_the_record(column: str) -> None:
    rows = [{column: UNAUTHENTICATED_PREFIX, "reason": UNAUTHENTICATED_PREFIX}]
    found = {}
    for output in ("table", "json"):
        stream = io.StringIO()
        render(Result("Kind", rows=rows, columns=(column, "reason")), output, stream, colour=False)
        found[output] = stream.getvalue()
    assert found["table"].splitlines()[1] == f"{WORDS}  {UNAUTHENTICATED_PREFIX}"
    assert json.loads(found["json"])["rows"] == rows


def test_a_watched_change_has_the_words() -> None:
    row = {
        "timestamp_ms": 0, "base_offset": 7, "is_control": False, "records": [],
        "principal": UNAUTHENTICATED_PREFIX,
    }  # fmt: skip
    (line,) = change_lines(row)
    assert line == f"7  1970-01-01T00:00:00.000Z  {WORDS}"
    (line,) = change_lines({**row, "principal": None, "client_id": "c"})
    assert line.endswith("  c")


def test_a_report_has_the_words() -> None:
    assert _shown("principal", UNAUTHENTICATED_PREFIX) == WORDS
    assert _short("principal", UNAUTHENTICATED_PREFIX) == WORDS
    assert _short("topic", UNAUTHENTICATED_PREFIX) == UNAUTHENTICATED_PREFIX
