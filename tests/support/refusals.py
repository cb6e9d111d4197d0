"""Collects the refusals that services send while tests run, and compares them with the tables.

A plugin of every run (``tests/conftest.py``). A test fails at its end if a service of this process
sent a refusal that its table does not have. Exempt are tests that invent codes (``made_up_codes``);
their refusals are not counted. ``--refusals FILE`` writes all refusals that were sent; ``shown_by``
runs such a run. All tests together must show every refusal of the tables.
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
    """Takes the refusals of the log, from whichever thread sends them."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: set[Refusal] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.args:
            self.refusals.add(Refusal(*record.args))  # type: ignore[arg-type]


def declared(service: Service) -> set[Refusal]:
    """The table of a service."""
    # Imported on demand: most tests do not use services.
    if service is Service.PEERS:
        from quorum.transport.answers import peer_refusals

        return peer_refusals()
    from quorate.services.answers import client_refusals

    return client_refusals()


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
    if request.node.get_closest_marker("made_up_codes"):
        return
    _sent.update(sent)
    undeclared = {each for each in sent if each not in declared(each.service)}
    assert not undeclared, f"sent, and in no table: {sorted(map(_text, undeclared))}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--refusals")
    if path:
        Path(path).write_text("".join(f"{_text(each)}\n" for each in _sent), encoding="utf-8")


def shown_by(folder: str, file: Path) -> set[Refusal]:
    """What services refuse in the tests of a folder, but for those that count it."""
    command = [sys.executable, "-m", "pytest", "-x", folder, "--refusals", str(file)]
    command += ["-p", "no:cacheprovider", "--ignore-glob=*answers_shown.py"]
    # Runs that clear away one another's temporary folders fail now and then.
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
