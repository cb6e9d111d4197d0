"""Finds references in documents and sources whose target does not exist.

A reference is anything that a reader would follow: a path, a heading of a page, the number of an
ADR or a requirement, a module's name, a section of a paper. Markdown links are checked elsewhere
(``tests/tidy/test_doc_commands.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from quorate.config.settings import settings

ROOT = Path(__file__).resolve().parents[2]
TOP = ("audit", "bench", "history", "metrics", "pyspark_quorate", "quorate", "quorum", "simulation",
       "snapshot", "statemachine", "tests")  # fmt: skip
_PATH = re.compile(
    r"(?<![\w./{*-])((?:docs|deploy|proto|"
    + "|".join(TOP)
    + r")/[\w./-]+\.(?:md|py|proto|scn|yaml|json))"
    r"(?:#([\w-]+))?\b"
)
_HEADING = re.compile(
    r"((?:[a-z_]+/)*[A-Za-z_-]+\.md)(?:\]\([^)]*\))?[`\"]*"
    r"(?:, section ([A-Z][\w-]*)| \(([A-Z][\w ,-]+)\))"
)
_ADR = re.compile(r"\bADRs? (\d+)((?:(?:, | and | to )\d+)*)")
_DECISION = re.compile(r"(?<!\[)\b[Dd]ecisions? \d+")
_SECTION = re.compile(r"\b[Ss]ections? \d+(?:\.\d+)*")
_REQUIREMENT = re.compile(
    r"(?<![\d.,])((?:630|279|320|380|360)\.\d{1,2})(?![\d.,%]*\d)(?! ?(?:ms|s|k|%))"
)
_MODULE = re.compile(r"``((?:" + "|".join(TOP) + r")(?:\.\w+)+)``")
_FILE = re.compile(r"`([a-z_0-9]+\.py)`")
"""A file that a page names without its folder."""
_SEE = re.compile(r"\bSee: ([^.\"¶]*(?:\.\w[^.\"¶]*)*)")
_TARGET = re.compile(
    r"ADRs? \d|KIP-\d|KAFKA-\d|ZOOKEEPER-\d|Raft|dissertation|\.(?:md|py|proto)\b|`|\d{3}\.\d|#\d"
)
_BASES = (ROOT, ROOT / "proto", ROOT / "tests" / "scenario" / "testdata")
"""Folders that a path may be relative to."""
_FOREIGN = re.compile(r"Raft|dissertation|KIP-|RFC|paper|Lamport|Ongaro")
_FOREIGN_REACH = 160
"""Number of characters before "section 5.2" in which its paper has to be named."""


def problems(text: str) -> list[str]:
    """Return the references of ``text`` without a target, in words; empty if there are none."""
    # A sentence may run over lines, but not over a blank one.
    plain = re.sub(r"[ \t]*\n[ \t#|]*(?=\S)", " ", re.sub(r"\n[ \t#]*\n", "\n¶\n", text))
    return [problem for rule in _RULES for problem in rule(plain)]


def _paths(text: str) -> Iterator[str]:
    for match in _PATH.finditer(text):
        found = [path for base in _BASES if (path := base / match[1]).exists()]
        path, anchor = found[0] if found else ROOT, match[2]
        if not found:
            yield f"no file {match[1]}"
        elif anchor and path.suffix == ".md" and anchor not in _anchors(path):
            yield f"no section {match[1]}#{anchor}"


def _headings(text: str) -> Iterator[str]:
    for match in _HEADING.finditer(text):
        found = [path for path in (ROOT / match[1], ROOT / "docs" / match[1]) if path.exists()]
        wanted = match[2] or match[3]
        if found and _slug(wanted) not in _anchors(found[0]):
            yield f"no section {wanted!r} in {match[1]}"


def _adrs(text: str) -> Iterator[str]:
    for match in _ADR.finditer(text):
        for number in re.findall(r"\d+", match[0]):
            if not list(ROOT.glob(f"docs/adr/{int(number):04}-*.md")):
                yield f"no ADR {number}"


def _decisions(text: str) -> Iterator[str]:
    for match in _DECISION.finditer(text):
        yield f"{match[0]!r} names no page: write ADR and its number"


def _sections(text: str) -> Iterator[str]:
    for match in _SECTION.finditer(text):
        if not _FOREIGN.search(text[max(0, match.start() - _FOREIGN_REACH) : match.start()]):
            yield f"{match[0]!r} of what?"


def _see(text: str) -> Iterator[str]:
    """What follows ``See:`` names a page, a number or a publication; a title has a capital."""
    for match in _SEE.finditer(text):
        for part in (each.strip() for each in match[1].split(";")):
            if part[:1].islower() and not _TARGET.search(part):
                yield f"See: {part!r} is nowhere"


def _requirements(text: str) -> Iterator[str]:
    for match in _REQUIREMENT.finditer(text):
        if match[1] not in _requirement_numbers():
            yield f"no requirement {match[1]}"


def _modules(text: str) -> Iterator[str]:
    for match in _MODULE.finditer(text):
        if not _is_module(match[1]):
            yield f"no module {match[1]}"


def _file_names(text: str) -> Iterator[str]:
    for match in _FILE.finditer(text):
        if match[1] not in _file_names_there():
            yield f"no file {match[1]}"


@cache
def _file_names_there() -> frozenset[str]:
    return frozenset(
        path.name for top in (*TOP, "deploy", "proto") for path in (ROOT / top).rglob("*.py")
    )


def _is_module(name: str) -> bool:
    """Whether ``name`` is a package, a module, a name in one of them, or a setting."""
    if name in settings():
        return True
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:size])
        source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if source.exists() or place.is_dir():
            rest = parts[size:]
            return not rest or (
                source.exists()
                and re.search(rf"\b{rest[0]}\b", source.read_text("utf-8")) is not None
            )
    return False


@cache
def _requirement_numbers() -> frozenset[str]:
    pages = ("requirements.md", "requirements-clients.md")
    text = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in pages)
    not_yet = text.partition("## Not yet")[2]
    shown = re.findall(r"^\*\*(\d{3}\.\d+)\.\*\*", text, re.M)
    return frozenset([*shown, *re.findall(r"\b\d{3}\.\d+\b", not_yet)])


@cache
def _anchors(path: Path) -> frozenset[str]:
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^(?:#+ (.+)|\*\*([^*]+)\.\*\*.*)$", text, re.M)
    return frozenset(_slug(heading or run_in) for heading, run_in in titles)


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


_RULES: tuple[Callable[[str], Iterator[str]], ...] = (
    _paths, _headings, _adrs, _decisions, _sections, _see, _requirements, _modules, _file_names,
)  # fmt: skip
