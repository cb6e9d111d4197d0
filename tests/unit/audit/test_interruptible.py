"""Ctrl-C ends a query that would run for hours, and nothing else is raised."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.database import database_of_export
from audit.errors import QueryError
from audit.export import export_log
from audit.interruptible import run_interruptible
from tests.support.audit_answers import trimmed_log

LATER_S = 0.3
TOO_LATE_S = 10.0


@pytest.fixture(autouse=True)
def ctrl_c_interrupts() -> Iterator[None]:
    """A shell starts background jobs with SIGINT ignored, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    """Send the signal to the main thread, as a terminal does."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_a_query_is_ended_by_ctrl_c(tmp_path: Path) -> None:
    """The database is usable afterwards. If nothing ends the query, a timer does, and it fails."""
    export_log(trimmed_log(tmp_path / "node").home, tmp_path / "out")
    with database_of_export(tmp_path / "out") as database:
        rescue = threading.Timer(TOO_LATE_S, database._connection.interrupt)
        pressed = threading.Timer(LATER_S, press_ctrl_c)
        rescue.start()
        pressed.start()
        with pytest.raises(KeyboardInterrupt):
            database.ask_sql("SELECT count(*) FROM range(9999999) a, range(9999999) b")
        rescue.cancel()
        assert database.ask_sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_an_interruption_waits_until_the_call_has_ended() -> None:
    stop, ended = threading.Event(), []

    def call() -> None:
        press_ctrl_c()
        assert stop.wait(TOO_LATE_S)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(call, stop.set)
    assert ended == [True]


def test_results_and_errors_are_those_of_the_call() -> None:
    def fail() -> None:
        raise QueryError("not valid")

    assert run_interruptible(lambda: 5, fail) == 5
    with pytest.raises(QueryError, match="not valid"):
        run_interruptible(fail, fail)
