"""A process that gets a stop signal while it loads its packages."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys

import click
import pytest

from quorate import entry
from quorate.cli.exits import Exit
from quorate.cli.main import cli
from quorate.early_stop import EARLY_STOP_TEXT, STOP_SIGNALS
from quorate.entry import VALUED, command_of

PROGRAM = """
import os, runpy, signal, sys

# As a terminal starts it; what a shell runs in the background ignores this signal.
signal.signal(signal.SIGINT, signal.default_int_handler)

class SendSignals:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            for number in {numbers!r}:
                os.kill(os.getpid(), number)

sys.meta_path.insert(0, SendSignals())
sys.argv = {arguments!r}
runpy.run_module("quorate", run_name="__main__", alter_sys=True)
"""
"""``python -m quorate`` that is sent signals when it begins to load a module."""


def call(module: str, numbers: tuple[int, ...], *arguments: str) -> list[str]:
    program = PROGRAM.format(
        module=module, numbers=[int(n) for n in numbers], arguments=["quorate", *arguments]
    )
    return [sys.executable, "-c", program]


def signalled_at_import(
    module: str, numbers: tuple[int, ...], *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        call(module, numbers, *arguments),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("module", ["quorate.cli", "click", "quorate.cli.server"])
@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_server_that_is_stopped_while_it_loads_ends_cleanly(module: str, number: int) -> None:
    """Goal: one exit code and one sentence for every stop before the start. Method: a signal at
    the first import, in the middle and at the last; one to reload before it ends nothing.
    """
    done = signalled_at_import(
        module, (signal.SIGHUP, number), "--quiet", "-o", "json", "server", "--config", "x"
    )
    assert (done.returncode, done.stdout, done.stderr) == (Exit.OK, "", f"{EARLY_STOP_TEXT}\n")


def test_a_closed_output_does_not_change_the_exit_code() -> None:
    """Goal: the exit code is the same. Method: a pipe without a reader, and a closed output."""
    stop = call("click", (signal.SIGTERM,), "server")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert subprocess.run(stop, stderr=writer, timeout=120, check=False).returncode == Exit.OK
    finally:
        os.close(writer)
    silent = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *stop]
    assert subprocess.run(silent, timeout=120, check=False).returncode == Exit.OK


def test_other_commands_are_ended_by_the_signal_as_always() -> None:
    assert signalled_at_import("click", (signal.SIGTERM,), "version").returncode == -signal.SIGTERM


def test_an_interrupted_command_shows_no_traceback() -> None:
    done = signalled_at_import("click", (signal.SIGINT,), "version")
    assert (done.returncode, done.stdout, done.stderr) == (Exit.INTERRUPTED, "", "")


@pytest.mark.parametrize(
    ("command", "status"),
    [("version", Exit.OK), ("nonsense", Exit.USAGE), ("server --config /none/at/all", Exit.USAGE)],
)
def test_the_exit_code_says_the_same_where_standard_error_is_full(
    command: str, status: Exit
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "quorate", *command.split()],
            stdout=subprocess.DEVNULL, stderr=full, check=False,
        )  # fmt: skip
    assert done.returncode == status


def test_the_exit_code_says_the_same_where_standard_error_is_a_full_pipe() -> None:
    """One that does not block, as a terminal's that another program has set so."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    with os.fdopen(readable), os.fdopen(writable, "wb", buffering=0) as full:
        while full.write(bytes(1 << 12)):
            pass
        done = subprocess.run(
            [sys.executable, "-m", "quorate", "nonsense"], stderr=full, check=False
        )
    assert done.returncode == Exit.USAGE


@pytest.mark.parametrize("form", ["table", "json"])
def test_an_output_that_cannot_be_written_is_an_error_in_one_line(form: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "quorate", "-o", form, "version"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    said = "error: cannot write the output: No space left on device"
    assert (done.returncode, done.stderr) == (
        Exit.FAILED,
        f"{said} (make room where it is written to)\n",
    )


def test_a_command_that_is_interrupted_at_its_first_line_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("quorate.cli.main.poll_on_waiting_thread", interrupted)
    for name in ("set_threshold", "freeze"):
        # Of this process, which runs other tests.
        monkeypatch.setattr(gc, name, lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["quorate", "version"])
    try:
        status = entry.main()
    except KeyboardInterrupt:
        pytest.fail("a traceback")
    assert status == Exit.INTERRUPTED


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ("server", "server"),
        ("--quiet server --config x", "server"),
        ("-o json --bootstrap server:1 server", "server"),
        ("--output=json server", "server"),
        ("topic create server", "topic"),
        ("--bootstrap server topic list", "topic"),
        ("--help", ""),
        ("-o", ""),
        ("", ""),
    ],
)
def test_the_command_is_found_without_parsing(arguments: str, command: str) -> None:
    assert command_of(arguments.split()) == command


def test_the_options_with_values_are_those_of_the_command_line() -> None:
    options = [each for each in cli.params if isinstance(each, click.Option)]
    taking = [each for each in options if not (each.is_flag or each.count)]
    assert {word for each in taking for word in each.opts} == VALUED


@pytest.mark.parametrize("asked", ["", "ERROR"])
def test_grpc_writes_into_the_log_of_a_server_only_if_asked(asked: str) -> None:
    code = (
        "import os, sys; sys.argv = ['quorate', 'server', '--help']\n"
        "from quorate.entry import main\n"
        "main(); print(os.environ['GRPC_VERBOSITY'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120,
        env={**environment, **({"GRPC_VERBOSITY": asked} if asked else {})},
    )  # fmt: skip
    assert done.stdout.split()[-1] == (asked or "NONE")


COUNT_SEARCHES = """
import gc, sys

found = []
gc.callbacks.append(lambda phase, _: found.append(phase) if phase == "start" else None)
sys.argv = ["quorate", "version"]
from quorate.entry import main
import quorate.cli.request_client, quorate.cli.topic

before = len(found)
main()
import email.mime.text, http.client, unittest.mock, xml.dom.minidom

print(len(found) - before, len(gc.get_objects()))
"""


def test_a_command_does_not_search_for_cycles_in_what_it_loads() -> None:
    """Goal: a quick command. Two searches at most, and none at its end: nothing is left to search.
    With Python's own thresholds there are some twenty of them.
    """
    done = subprocess.run(
        [sys.executable, "-c", COUNT_SEARCHES],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    searches, left = map(int, done.stdout.split()[-2:])
    assert searches <= 2
    assert left < 10_000
