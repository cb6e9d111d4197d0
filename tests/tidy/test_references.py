"""What documents and sources refer to is there: files, sections, ADRs, requirements, modules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.references import problems

ROOT = Path(__file__).resolve().parents[2]
INVENTED = {
    "tests/gate/test_gate.py": "names of test files that it makes itself",
    "tests/mutation/test_campaign.py": "a test file that is not there, to see a run refused",
    "tests/tidy/test_doc_commands.py": "a broken link, to see it found",
    "tests/tidy/test_guarantees.py": "a test that is not there, to see it found",
    "tests/tidy/test_references.py": "this file",
    "tests/unit/test_proto_lint.py": "a bad file, to see it found",
    "CHANGELOG.md": "it speaks of what is gone as well",
}
"""Files that name what is not there on purpose, and why."""


def files() -> list[str]:
    """Every text of ours that refers to others; generated stubs are not ours to write."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md", "*.py", "*.proto", "*.scn",
         "*.yaml", "*.toml"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    return [
        name
        for name in listed
        if name not in INVENTED and not name.startswith("quorum/v1/") and (ROOT / name).is_file()
    ]


def test_references_lead_somewhere() -> None:
    found = [
        f"{name}: {problem}"
        for name in files()
        for problem in problems((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert found == []


def test_what_is_excepted_exists() -> None:
    assert [name for name in INVENTED if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    "text",
    [
        "see docs/nowhere.md",
        "See: docs/reference/protocol.md#nowhere, KIP-98.",
        "see docs/operations/recover.md, section Nowhere",
        "See: docs/reference/protocol.md (Nowhere at all).",
        "``quorum.core.nowhere`` does it",
        "| `nowhere.py` | what it does |",
        "tests/unit/core/test_nowhere.py shows it",
        "ADR 46 says so",
        "ADR 7 and 99 say so",
        "as in decision 7",
        "as section 5.1 demands",
        "See: architecture, row Disk.",
        "Needed by 630.99.",
    ],
)
def test_the_rules_see_what_leads_nowhere(text: str) -> None:
    assert len(problems(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "see docs/operations/recover.md, section Damage",
        "See: docs/reference/formats.md#segment-and-index, KIP-98 (offset of a batch).",
        "See: docs/reference/elections.md (Finding the leader); ADR 38.",
        "See: Raft sections 5.2 and 5.4.1; Wing, Gong: Testing (1993).",
        "``quorum.core.following.leader_search`` and ``quorum.fetch_timeout_ms``, [ADR 7 and 8](x)",
        "snapshot/slow_transfer_keeps_its_file.scn shows 630.6 and 380.7",
        "## Decision\n\n1. One change at a time.",
    ],
)
def test_the_rules_let_good_references_pass(text: str) -> None:
    assert problems(text) == []
