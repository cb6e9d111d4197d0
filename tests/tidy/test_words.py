"""Identifiers use the field's words: none is built from a word that only this project had."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.tidy.test_sizes import FILES

ROOT = Path(__file__).resolve().parents[2]
REFUSED = {
    "reign": "leadership term",
    "reigns": "leadership terms",
    "office": "leadership",
    "roster": "voter list",
    "rosters": "voter lists",
    "founding": "bootstrap",
    "founded": "bootstrapped",
    "founder": "bootstrap voter",
    "founders": "bootstrap voters",
    "dispute": "divergence resolution",
    "disputes": "divergence resolutions",
    "opponent": "conflicting peer",
    "prevail": "win",
    "verdict": "check result, answer class",
    "verdicts": "check results",
    "condemn": "quarantine",
    "condemned": "quarantined",
    "condemnation": "quarantine mark",
    "barred": "disqualified",
    "farewell": "EndQuorumEpoch",
    "farewells": "EndQuorumEpoch requests",
    "currency": "freshness",
    "standstill": "process pause",
    "punctuality": "pause detector",
    "shelf": "snapshot index",
    "shelved": "indexed",
    "speaker": "peer session",
    "speakers": "peer sessions",
    "complaints": "rate-limited log",
    "trail": "segment tail",
    "parking": "purgatory",
    "parked": "held",
    "chore": "periodic task",
    "chores": "periodic tasks",
    "keeper": "manager",
    "witness": "observer",
    "surroundings": "environment",
    "dice": "rng",
    "speculation": "uncommitted image",
    "pursue": "poll",
    "rot": "corruption",
    "rotten": "corrupt",
    "sound": "intact",
    "judging": "evaluation",
    "life": "incarnation",
    "lives": "incarnations, process runs",
    "told": "reported, notified",
    "heard": "received, last contact",
    "unheard": "silent",
    "harm": "fault, damage",
    "storm": "fault phase",
    "doomed": "last pass",
    "judge": "evaluate, check",
    "judged": "evaluated",
    "judges": "evaluates, checks",
    "mend": "heal, repair",
    "mended": "healed, repaired",
    "whosesoever": "any",
    "vanished": "missing",
    "stand": "campaign",
    "untold": "unreported",
}
"""Segment of an identifier, and what to write instead."""
SENTENCES = frozenset(
    {
        "office",
        "life",
        "lives",
        "judging",
        "told",
        "heard",
        "unheard",
        "harm",
        "mended",
        "vanished",
        "stand",
    }
)
"""Plain English in the name of a test, which is a sentence."""
EXCEPTIONS = {
    "test_a_write_returns_its_position_and_leaves_an_audit_trail": "an audit trail is that",
    "ZooKeeper": "the name of a product",
    "stand_in": "plain English: a substitute",
    "is_sign_of_life": "plain English: a message that shows that its sender runs",
}
"""Identifiers that may stay, without leading underscores, and why."""


def words(identifier: str) -> list[str]:
    """The words of a name in snake, upper or camel case."""
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", identifier)
    return [part.lower() for part in parts]


def defined(source: str) -> set[str]:
    """The names that a module defines or binds; names it imports are another module's."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg is not None:
            found.add(node.arg)
    return found


def refused(names: set[str]) -> list[str]:
    problems = []
    for name in sorted(names):
        if name.lstrip("_") in EXCEPTIONS:
            continue
        for word in words(name):
            if word in REFUSED and not (name.startswith("test_") and word in SENTENCES):
                problems.append(f"{name}: write {REFUSED[word]!r} for {word!r}")
    return problems


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_identifiers_use_the_words_of_the_field(path: Path) -> None:
    names = defined(path.read_text(encoding="utf-8"))
    names.add(path.stem)
    assert refused(names) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("proto/**/*.proto")), ids=lambda path: path.stem)
def test_messages_and_fields_use_the_words_of_the_field(path: Path) -> None:
    code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    assert refused(set(re.findall(r"[A-Za-z_]\w*", code))) == []


def test_the_rule_sees_every_kind_of_name() -> None:
    source = "class RosterFile:\n    def f(self, dispute=1):\n        self.REIGN_MS = g(parked=2)\n"
    assert len(refused(defined(source))) == 4
    assert refused({"_is_sign_of_life", "grotesque", "sounding"}) == []
