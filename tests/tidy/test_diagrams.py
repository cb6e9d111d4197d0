"""The diagrams of the documents show what the code does: roles, packages, messages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorum.core.messages import message_types
from quorum.core.protocol.role_transitions import TRANSITIONS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE_MAP = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")
FLOWS = ("A write", "A replica that fell behind", "Bootstrap")
PACKAGES = (
    "audit",
    "history",
    "metrics",
    "pyspark_quorate",
    "quorate",
    "quorum",
    "simulation",
    "snapshot",
    "statemachine",
)


NODE = r"\w+(?:\[\(?\"[^\"]+\"\)?\]|\[[^\]\"]+\])?"
GRAMMAR = {
    "flowchart": rf"flowchart (LR|TD)|subgraph \w+ \[\w+\]|end|{NODE}"
    rf"|{NODE} (-->|~~~|-- (\w+|\"[^\"]+\") -->) {NODE}",
    "stateDiagram-v2": r"stateDiagram-v2|(\[\*\]|\w+) --> \w+(: [^:;]+)?",
    "sequenceDiagram": r"sequenceDiagram|participant \w+ as [^:;]+|Note over \w+(,\w+)?: [^;]+"
    r"|\w+--?>>\w+: [^;]+|(par|and|loop) [^:;]+|end",
}
"""The forms of a line that our diagrams use, by kind. Each was rendered once."""


def blocks() -> Iterator[tuple[str, str]]:
    """Every Mermaid text of the documents, with the page that shows it."""
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        for block in re.findall(r"```mermaid\n(.*?)```", path.read_text("utf-8"), re.S):
            yield str(path.relative_to(ROOT)), block


def wrong_lines(block: str) -> list[str]:
    """Lines of a Mermaid text that have none of the forms that we know to be rendered."""
    kind = re.match(r"[\w-]+", block)
    form = GRAMMAR.get(kind[0], "(?!)") if kind else "(?!)"
    return [line for line in block.splitlines() if not re.fullmatch(form, line.strip())]


def diagram(section: str, text: str = TEXT) -> str:
    """The Mermaid text below the heading ``section``."""
    return text.split(f"## {section}\n")[1].split("```mermaid\n")[1].split("```")[0]


def arrows(text: str) -> set[tuple[str, str]]:
    return set(re.findall(r"^ +(\w+) --> (\w+)", text, re.M))


def imported(package: str) -> Iterator[str]:
    """Our other top-level packages that ``package`` imports."""
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names.append(node.module)
            yield from {name.partition(".")[0] for name in names} & {*PACKAGES} - {package}


def test_the_role_diagram_has_every_change_of_role_and_no_other() -> None:
    changes = {(before.__name__, after.__name__) for before, after, _ in TRANSITIONS}
    assert arrows(diagram("Role states")) == changes


def test_the_package_map_is_what_is_imported() -> None:
    found = {(package, other) for package in PACKAGES for other in imported(package)}
    assert arrows(diagram("Package map", PACKAGE_MAP)) == found


def test_the_package_map_agrees_with_the_import_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["id"] == "folders")
    floor = {name: n for n, layer in enumerate(layers) for name in layer.split(" | ")}
    assert set(floor) == {*PACKAGES}
    drawn = arrows(diagram("Package map", PACKAGE_MAP))
    assert [pair for pair in sorted(drawn) if floor[pair[0]] >= floor[pair[1]]] == []


@pytest.mark.parametrize("section", FLOWS)
def test_messages_and_participants_of_a_flow_exist(section: str) -> None:
    text = diagram(section)
    known = {re.sub(r"(Request|Response)$", "", name) for name in vars(message_types)} | {
        *vars(message_types)
    }
    named = set(re.findall(r"\b(?:Fetch\w*|Vote|\w+Epoch|Bootstrap\w+)\b", text))
    assert named - known == set()
    participants = set(re.findall(r"participant (\w+)", text))
    ends = {end for pair in re.findall(r"(\w)--?>>(\w)", text) for end in pair}
    assert ends == participants


@pytest.mark.parametrize(("page", "block"), [*blocks()], ids=lambda each: each.splitlines()[0])
def test_a_diagram_has_only_forms_that_were_rendered(page: str, block: str) -> None:
    assert wrong_lines(block) == [], page


@pytest.mark.parametrize(
    "block",
    [
        "flowchart LR\n    a -> b\n",
        'flowchart LR\n    a["x --> b\n',
        "sequenceDiagram\n    A->>B\n",
        "sequenceDiagram\n    Note over A; text\n",
        "stateDiagram-v2\n    A --> B: one: two\n",
        "graph LR\n",
    ],
)
def test_a_line_of_another_form_is_seen(block: str) -> None:
    assert wrong_lines(block)
