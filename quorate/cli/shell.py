"""``quorate shell``: look around in a state as in a file system."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.past import (
    moment_options,
    reported_past,
    source_and_moment,
    warn_of_problems,
)
from quorate.cli.session import Session
from quorate.visible_text import visible
from quorum.errors import QuorateError

if TYPE_CHECKING:
    from quorate.timetravel.shell import Answer, Shell

_ENDS = ("exit", "quit")


@click.command("shell", cls=LocalCommand)
@click.argument("source")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@moment_options
@pass_session
def shell(
    session: Session,
    source: str,
    words: tuple[str, ...],
    at_offset: int | None,
    at_time: str | None,
    uncommitted: bool,
) -> None:
    """Look around in the metadata of SOURCE with ls, cd, cat, find, tree and log.

    SOURCE is what `quorate state` takes: a data directory, ours or a Kafka controller's, a copy of
    one, or a checkpoint. Nothing is written. With a COMMAND, such as `cat /topic/orders`, it runs
    that one. Without one it reads commands from the terminal or from standard input, and stops at
    the first that fails unless a person typed it. Lines that begin with # are passed over. `help`
    lists the commands.
    """
    # Loaded here: help needs no state.
    from quorate.timetravel.positions import state_at
    from quorate.timetravel.shell import Shell

    path, moment = source_and_moment(source, at_offset, at_time)
    with reported_past():
        state = state_at(path, moment, with_uncommitted=uncommitted)
    warn_of_problems(session, state)
    place = Shell(state)
    if words:
        with _reported():
            _show(session, place.execute(words))
    elif sys.stdin.isatty():
        _converse(session, place)
    else:
        for line in sys.stdin:
            if line.strip() in _ENDS:
                return
            with _reported():
                _show(session, place.run(line))


@contextmanager
def _reported() -> Iterator[None]:
    """As ``reported_past``; a path that does not exist is a thing not found as well.

    Raises:
        CliError: The command cannot show what it was asked for.
    """
    from quorate.timetravel.tree import NoSuchPathError

    try:
        with reported_past():
            yield
    except NoSuchPathError as error:
        raise CliError(str(error), code=Exit.NOT_FOUND) from error


def _show(session: Session, answer: Answer | None) -> None:
    if answer is None:
        return
    if session.output == "table" and answer.lines is not None:
        for line in answer.lines:
            click.echo(visible(line))
        return
    session.show(Result(answer.kind, answer.fields, answer.rows, answer.columns))


def _converse(session: Session, place: Shell) -> None:
    """Read lines from a terminal until its end; an error is shown, and the next line is read."""
    _complete_with(place)
    session.announce("help lists the commands; exit ends")
    while True:
        try:
            line = input(place.prompt)
            if line.strip() in _ENDS:
                return
            with _reported():
                _show(session, place.run(line))
        except EOFError:
            click.echo(err=True)
            return
        except KeyboardInterrupt:
            click.echo(err=True)
        except (CliError, QuorateError) as error:
            session.warn(str(error))


def _complete_with(place: Shell) -> None:
    """Complete names with the tabulator key, where the interpreter has a line editor."""
    try:
        import readline
    except ImportError:
        return

    def complete(text: str, number: int) -> str | None:
        is_command = not readline.get_line_buffer()[: readline.get_begidx()].strip()
        found = place.completions(text, is_command=is_command)
        return found[number] if number < len(found) else None

    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
