"""The commands of ``quorate shell``: a line in, a result out. They read, and change nothing.

Paths are those of ``quorate.timetravel.tree``.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from audit.errors import AuditError
from audit.replay import oldest_state
from quorate.timetravel.attribution import Author, authors
from quorate.timetravel.moments import NEWEST, parse_moment, time_text
from quorate.timetravel.positions import PastState, state_of
from quorate.timetravel.tree import ImageTree, NoSuchPathError, Path, path_text, resolve
from quorum.errors import QuorumUsageError
from statemachine.sections.tracking import RecordKey

NAMES_MAX = 1_000
"""Names that completion offers at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command shows: fields, and rows if it is a list."""

    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)
    rows: Sequence[Mapping[str, object]] | None = None
    columns: Sequence[str] = ()
    lines: Sequence[str] | None = None
    """For people, in place of fields and rows."""


class ShellUsageError(QuorumUsageError):
    """A line that is no command, or has the wrong arguments."""


class Command(NamedTuple):
    """One command of the shell."""

    run: Callable[..., Answer]
    usage: str
    does: str
    arguments_min: int
    arguments_max: int


_COMMANDS: dict[str, Command] = {}
_MANY = 1_000
"""Paths that ``cat`` takes at most."""

Run = TypeVar("Run", bound=Callable[..., Answer])


def _command(usage: str, does: str, least: int, most: int) -> Callable[[Run], Run]:
    """Make a method the command that ``usage`` begins with."""

    def enter(run: Run) -> Run:
        _COMMANDS[usage.split()[0]] = Command(run, usage, does, least, most)
        return run

    return enter


class Shell:
    """A place in the tree of one state of one source."""

    def __init__(self, state: PastState) -> None:
        self.path: Path = ()
        self._show(state)

    @property
    def prompt(self) -> str:
        """Where in which state the next command works."""
        return f"{self.state.image.provenance.end_offset}:{path_text(self.path)}> "

    def run(self, line: str) -> Answer | None:
        """Run one line; None for an empty one, and for a comment, which begins with ``#``.

        Raises:
            ShellUsageError: It is no command, or its arguments are wrong.
            NoSuchPathError: It names a path that does not exist.
            AuditError: The wanted state or its changes cannot be shown.
        """
        if line.lstrip().startswith("#"):
            return None
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise ShellUsageError(f"cannot read the line: {error}") from error
        return self.execute(words) if words else None

    def execute(self, words: Sequence[str]) -> Answer:
        """As ``run``, with the words of a line; at least one."""
        name, *arguments = words
        command = _COMMANDS.get(name)
        if command is None:
            near = difflib.get_close_matches(name, _COMMANDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(_COMMANDS)}"
            raise ShellUsageError(f"{name!r} is no command; {hint}")
        if not command.arguments_min <= len(arguments) <= command.arguments_max:
            raise ShellUsageError(f"usage: {command.usage}")
        return command.run(self, *arguments)

    def completions(self, text: str, *, is_command: bool) -> list[str]:
        """Return what a word that begins with ``text`` may become."""
        if is_command:
            return [name for name in _COMMANDS if name.startswith(text)]
        folder, slash, last = text.rpartition("/")
        try:
            names = self._tree.names(resolve(folder or slash, self.path))
        except NoSuchPathError:
            return []
        found = (f"{folder}{slash}{name}" for name in names if name.startswith(last))
        return [name for name, _ in zip(found, range(NAMES_MAX))]

    # ------------------------------------------------------------------ commands

    @_command("ls [PATH]", "names in a folder", 0, 1)
    def _ls(self, text: str = "") -> Answer:
        path = resolve(text, self.path)
        is_entity = self._tree.entity(path) is not None
        names = [path[-1]] if is_entity else self._tree.names(path)
        rows = [{"name": name} for name in names]
        return Answer("Names", {"path": path_text(path)}, rows, ("name",), names)

    @_command("cd [PATH]", "go to a folder", 0, 1)
    def _cd(self, text: str = "/") -> Answer:
        path = resolve(text, self.path)
        self._tree.names(path)
        self.path = path
        return self._pwd()

    @_command("pwd", "the present folder", 0, 0)
    def _pwd(self) -> Answer:
        return Answer("Path", {"path": path_text(self.path)}, lines=(path_text(self.path),))

    @_command("cat PATH...", "the fields of entities", 1, _MANY)
    def _cat(self, *texts: str) -> Answer:
        rows = []
        for text in texts:
            path = resolve(text, self.path)
            entity = self._tree.entity(path)
            if entity is None:
                raise ShellUsageError(f"{path_text(path)} is a folder; ls shows what is in it")
            rows.append({"path": path_text(path), "kind": entity.kind, **entity.fields()})
        return Answer("Entity", rows[0]) if len(rows) == 1 else Answer("Entities", {}, rows)

    @_command("find PATTERN [PATH]", "entities by name, or by path with a slash", 1, 2)
    def _find(self, pattern: str, text: str = "") -> Answer:
        found = [path_text(path) for path in self._tree.find(pattern, resolve(text, self.path))]
        rows = [{"path": path} for path in found]
        return Answer("Paths", {"pattern": pattern}, rows, ("path",), found)

    @_command("tree [PATH [LEVELS]]", "a folder with what is below it", 0, 2)
    def _draw(self, text: str = "", depth_text: str = "2") -> Answer:
        if not depth_text.isdecimal():
            raise ShellUsageError(f"{depth_text!r} is no number of levels")
        path = resolve(text, self.path)
        rows, lines = [], [path_text(path)]
        for below, is_folder in self._tree.walk(path, depth=int(depth_text)):
            rows.append({"path": path_text(below), "is_folder": is_folder})
            indent = "  " * (len(below) - len(path))
            lines.append(f"{indent}{below[-1]}{'/' if is_folder else ''}")
        return Answer("Tree", {"path": path_text(path)}, rows, ("path",), lines)

    @_command("log PATH", "who changed an entity, when and why", 1, 1)
    def _log(self, text: str) -> Answer:
        path = resolve(text, self.path)
        entity = self._tree.entity(path)
        if entity is None:
            raise ShellUsageError(f"{path_text(path)} is a folder; log shows changes of one entity")
        rows = self._changes_of(entity.key)
        columns = ("offset", "time", "principal", "reason", "record_type")
        fields: dict[str, object] = {"path": path_text(path)}
        if begin := oldest_state(self.state.plan):
            # Of what was trimmed only the state is left.
            fields["known_from_offset"] = begin
        return Answer("Changes", fields, rows, columns)

    @_command("at [OFFSET|TIME]", "another state of the same source", 0, 1)
    def _at(self, text: str = "") -> Answer:
        moment = parse_moment(text) if text else NEWEST
        self._show(state_of(self.state.plan, moment))
        try:
            self._tree.names(self.path)
        except NoSuchPathError:
            self.path = ()
        provenance = self.state.image.provenance
        time = time_text(provenance.timestamp_ms)
        fields = {"as_of_offset": provenance.end_offset, "epoch": provenance.epoch, "time": time}
        return Answer("Moment", fields)

    @_command("help", "this list", 0, 0)
    def _help(self) -> Answer:
        rows = [{"command": each.usage, "does": each.does} for each in _COMMANDS.values()]
        return Answer("Commands", {}, rows, ("command", "does"))

    # ------------------------------------------------------------------ inside

    def _show(self, state: PastState) -> None:
        self.state = state
        self._tree = ImageTree(state.image)
        self._authors: dict[RecordKey, list[Author]] | None = None

    def _changes_of(self, key: RecordKey) -> list[Author]:
        if self._authors is None:
            plan, end_offset = self.state.plan, self.state.image.provenance.end_offset
            begin = oldest_state(plan)
            if begin >= end_offset > 0:
                raise AuditError(
                    f"{plan.source}: the log before offset {end_offset} was trimmed, so its "
                    "changes are not known"
                )
            self._authors = authors(plan, begin, end_offset)
        return self._authors.get(key, [])
