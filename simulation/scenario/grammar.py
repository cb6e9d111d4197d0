"""Scenario files as data: a header, then blocks of one command and what it must print.

    file    := header block*           header: comment lines stating the goal
    block   := comment* command arg* NEWLINE "----" NEWLINE output BLANK
    arg     := word | key=value | key=(value,value,...)

Parsing keeps every comment, so that writing a file back changes nothing but outputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

SEPARATOR = "----"
_NAMED = re.compile(r"([a-z][a-z_0-9]*)=(.*)", re.DOTALL)


class ScenarioError(Exception):
    """An invalid script. The text names the place and the cause."""


@dataclass(slots=True)
class Block:
    """One command, the comments above it and its expected output."""

    line: int
    """Line number of the command in its file, from 1."""
    comments: list[str]
    command: str
    output: list[str]


@dataclass(slots=True)
class Scenario:
    """One file."""

    path: Path
    header: list[str]
    blocks: list[Block]

    def text(self) -> str:
        """Return the text of the scenario file."""
        parts = ["\n".join(self.header)]
        for block in self.blocks:
            lines = [*block.comments, block.command, SEPARATOR, *block.output]
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"


def parse(path: Path, text: str) -> Scenario:
    """Parse a scenario file.

    Raises:
        ScenarioError: Naming file and line of what does not fit the grammar.
    """
    lines = text.rstrip("\n").split("\n")
    at = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    header, blocks = lines[:at], []
    if not header:
        raise ScenarioError(f"{path}:1: a scenario begins with comment lines that state its goal")
    comments: list[str] = []
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.startswith("#"):
            comments.append(line)
            at += 1
        else:
            if at + 1 >= len(lines) or lines[at + 1] != SEPARATOR:
                raise ScenarioError(f"{path}:{at + 1}: a command is followed by {SEPARATOR}")
            end = at + 2
            while end < len(lines) and lines[end].strip():
                end += 1
            blocks.append(Block(at + 1, comments, line.strip(), lines[at + 2 : end]))
            comments, at = [], end
    if comments:
        raise ScenarioError(f"{path}:{len(lines)}: comments without a command below them")
    return Scenario(path, header, blocks)


@dataclass(slots=True)
class Arguments:
    """The arguments of one command. ``finish`` reports those that the command did not take."""

    name: str
    words: list[str]
    named: dict[str, str]
    _asked: set[str] = field(default_factory=set)
    _words_taken: int = 0

    def word(self, what: str, default: str | None = None) -> str:
        """Take the next plain word."""
        if self._words_taken < len(self.words):
            self._words_taken += 1
            return self.words[self._words_taken - 1]
        if default is None:
            raise ScenarioError(f"{self.name} needs {what}")
        return default

    def node(self) -> int:
        """Take the next plain word as a node id."""
        return self.number_in("a node", self.word("a node"))

    def rest(self) -> list[str]:
        """Take all remaining plain words."""
        rest = self.words[self._words_taken :]
        self._words_taken = len(self.words)
        return rest

    def nodes(self) -> tuple[int, ...]:
        """Take all remaining plain words as node ids."""
        return tuple(self.number_in("a node", word) for word in self.rest())

    def text(self, key: str, default: str = "") -> str:
        """Take a named argument."""
        self._asked.add(key)
        return self.named.get(key, default)

    def number(self, key: str, default: int | None = None) -> int:
        """Take a named argument that is a whole number."""
        value = self.text(key)
        if value:
            return self.number_in(key, value)
        if default is None:
            raise ScenarioError(f"{self.name} needs {key}=")
        return default

    def numbers(self, key: str) -> tuple[int, ...]:
        """Take a named argument: a list ``(1,2)`` or a single number; empty when absent."""
        items = self.text(key).strip("()").split(",")
        return tuple(self.number_in(key, item) for item in items if item)

    def finish(self) -> None:
        """Check that the command has taken every argument."""
        left = [*self.words[self._words_taken :], *(set(self.named) - self._asked)]
        if left:
            raise ScenarioError(f"{self.name} does not take {', '.join(sorted(left))}")

    def number_in(self, what: str, text: str) -> int:
        """Return ``text`` as a whole number; the error names the argument."""
        try:
            return int(text)
        except ValueError:
            raise ScenarioError(f"{self.name}: {what} is a number, not {text!r}") from None


def parse_command(text: str) -> Arguments:
    """Split a command line."""
    name, *parts = text.split()
    words, named = [], {}
    for part in parts:
        match = _NAMED.fullmatch(part)
        if match is None or name == "propose":
            words.append(part)
        else:
            named[match[1]] = match[2]
    return Arguments(name, words, named)
