"""Collects the refusals that services send while tests run, and compares them with the tables.

A plugin of every pytest run (``tests/conftest.py``). A test fails at its end if a service of this
process sent a refusal that its table does not have. Tests that invent codes (``invented_codes``)
are exempt, and their refusals do not count. ``--refusals FILE`` writes all refusals that were sent;
``shown_by`` starts such a run. All tests together must show every refusal of the tables.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorum.answered import Form, Refusal, Service

ROOT = Path(__file__).resolve().parents[2]
_sent: set[Refusal] = set()


class _Lines(logging.Handler):
    """A log handler that collects refusals, from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: set[Refusal] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.args:
            self.refusals.add(Refusal(*record.args))  # type: ignore[arg-type]


def declared(service: Service) -> set[Refusal]:
    """Return the table of a service."""
    return peer_refusals() if service is Service.PEERS else client_refusals()


# The tables are imported on demand: most tests do not use services.


def peer_refusals() -> set[Refusal]:
    """Return every error code and status with which RaftService refuses a request."""
    from quorum.core.messages.message_types import REQUESTS
    from quorum.transport.answers import STATUSES, codes_of, kind_of

    codes = {
        Refusal(Service.PEERS, kind_of(request), Form.ANSWER, code.name)
        for request in REQUESTS
        for code in codes_of(request)
    }
    statuses = {
        Refusal(Service.PEERS, method, Form.STATUS, status.name)
        for method, found in STATUSES.items()
        for status in found
    }
    return codes | statuses


def client_refusals() -> set[Refusal]:
    """Return every error code with which a service for clients refuses a call or a part of it."""
    from quorate.services.answers import ANSWERS

    return {
        Refusal(Service.CLIENTS, method, form, code.name)
        for method, found in ANSWERS.items()
        for form, codes in (
            (Form.STATUS, found.statuses),
            (Form.ANSWER, found.answers),
            (Form.PART, found.parts),
        )
        for code in codes
    }


@pytest.fixture(autouse=True)
def nothing_undeclared_is_sent(request: pytest.FixtureRequest) -> Iterator[None]:
    log, seen = logging.getLogger("quorum.answered"), _Lines()
    log.addHandler(seen)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    yield
    log.propagate = True
    log.setLevel(logging.NOTSET)
    log.removeHandler(seen)
    sent = seen.refusals
    if request.node.get_closest_marker("invented_codes"):
        return
    _sent.update(sent)
    undeclared = {each for each in sent if each not in declared(each.service)}
    assert not undeclared, f"sent, and in no table: {sorted(map(_text, undeclared))}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--refusals")
    if path:
        Path(path).write_text("".join(f"{_text(each)}\n" for each in _sent), encoding="utf-8")


def shown_by(folder: str, file: Path) -> set[Refusal]:
    """Return the refusals in the tests of a folder, except the tests that count them."""
    command = [sys.executable, "-m", "pytest", "-x", folder, "--refusals", str(file)]
    command += ["-p", "no:cacheprovider", "--ignore-glob=*answers_shown.py"]
    # Each run has its own temporary folder: runs that clean up one another's fail at times.
    command += ["--basetemp", str(file.with_name("inner"))]
    run = subprocess.run(
        command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return {_parsed(line) for line in file.read_text(encoding="utf-8").splitlines()}


def _text(refusal: Refusal) -> str:
    return f"{refusal.service.value} {refusal.method} {refusal.form.value} {refusal.name}"


def _parsed(text: str) -> Refusal:
    service, method, form, name = text.split(" ")
    return Refusal(Service(service), method, Form(form), name)
