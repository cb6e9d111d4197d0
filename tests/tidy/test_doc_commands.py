"""Links in the documents lead somewhere, and commands in them exist with the options shown."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from quorate.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"^ *```[a-z]*\n(.*?)^ *```$", re.M | re.S)
DIAGRAM = re.compile(r"^```mermaid\n.*?^```$", re.M | re.S)
INLINE = re.compile(r"`(quorate [^`]+)`")
MAKE = re.compile(r"^(?:.*`)?make ([a-z-]+)", re.M)


def documents() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    return [ROOT / name for name in sorted(set(listed)) if name and (ROOT / name).is_file()]


DOCUMENTS = documents()


def anchors(text: str) -> set[str]:
    """What headings can be linked as."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def broken_links(path: Path, text: str) -> list[str]:
    broken = []
    for target, anchor in LINK.findall(FENCE.sub("", text)):
        if "://" in target or target.startswith("mailto:"):
            continue
        found = (path.parent / target).resolve() if target else path
        if not found.exists():
            broken.append(target)
            continue
        is_checked = anchor and found.suffix == ".md"
        if is_checked and anchor[1:] not in anchors(found.read_text(encoding="utf-8")):
            broken.append(target + anchor)
    return broken


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert broken_links(path, path.read_text(encoding="utf-8")) == []


def shown_commands(text: str) -> Iterator[str]:
    """Every `quorate ...` of a document, from code blocks and from running text."""
    text = DIAGRAM.sub("", text)
    for block in FENCE.findall(text):
        lines = re.sub(r"\\\n", " ", block).splitlines()
        yield from (line.strip() for line in lines if line.strip().startswith("quorate "))
    rest = FENCE.sub("", text)
    yield from (line.strip() for line in re.findall(r"^ {4}quorate .+$", rest, re.M))
    for command in INLINE.findall(rest):
        yield " ".join(command.split())


def problem_with(shown: str) -> str:
    """Return why the command line is invalid; empty when it is valid. Values are not checked."""
    # Text behind two spaces explains the command.
    words = shlex.split(re.split(r"\s{2,}|\s[&|>#]", re.sub(r"\$\([^)]*\)|<[^>]*>", "X", shown))[0])
    command: click.Command = cli
    for word in words[1:]:
        if word.startswith("-"):
            name = word.partition("=")[0]
            known = {option for each in command.params for option in each.opts} | {"--help"}
            if name not in known:
                return f"{command.name} has no option {name}"
        elif isinstance(command, click.Group):
            following = command.get_command(click.Context(command), word)
            if following is None and not _follows_an_option(words, word):
                return f"{command.name} has no command {word}"
            command = following or command
    return ""


def _follows_an_option(words: list[str], word: str) -> bool:
    return words[words.index(word) - 1].startswith("-")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    problems = [(each, problem_with(each)) for each in shown_commands(text)]
    assert [(shown, problem) for shown, problem in problems if problem] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    blocks = "\n".join(FENCE.findall(path.read_text(encoding="utf-8")))
    assert set(MAKE.findall(blocks)) <= targets


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if path.is_relative_to(ROOT / "docs") and path.name[:2] != "00"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_page_begins_with_whom_it_is_for(path: Path) -> None:
    """A decision (``00nn-``) begins with its context instead."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert re.match(r"(This page is|These pages are) for ", lines[2])


def test_the_rules_see_what_is_wrong() -> None:
    assert problem_with("quorate topic create x --partitions 8 --replication-factor 1") == ""
    assert problem_with("quorate --bootstrap n1:9190 quorum describe status") == ""
    assert problem_with("quorate topic creat x")
    assert problem_with("quorate topic create x --partition-count 8")
    assert broken_links(ROOT / "README.md", "[a](nowhere.md) [b](docs/) [c](#find-your-way)") == [
        "nowhere.md"
    ]
    assert broken_links(ROOT / "README.md", "[c](docs/reference/protocol.md#nonsense)")
