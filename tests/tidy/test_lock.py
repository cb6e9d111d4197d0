"""The lock pins what pyproject.toml asks for, by hash. The audit reads what pip-audit prints."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.gate.vulnerabilities import report

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "deploy" / "requirements.lock").read_text("utf-8")
EXTRAS = ("codecs", "fast", "console", "certs", "jwt", "otel", "backup")
"""What the image has besides the dependencies that everybody needs."""
PINNED = {
    canonicalize_name(name): (version, hashes.count("--hash=sha256:"))
    for name, version, hashes in re.findall(
        r"^([\w.-]+)==(\S+) \\\n((?: +--hash=\S+(?: \\)?\n)*)", LOCK, re.MULTILINE
    )
}
"""Version and number of hashes, by name."""


def wanted() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [
        Requirement(each)
        for each in (
            *project["dependencies"],
            *(each for extra in EXTRAS for each in extras[extra]),
        )
    ]


def test_the_lock_is_made_with_these_extras() -> None:
    command = (ROOT / ".ci" / "dependencies").read_text("utf-8")
    assert sorted(re.findall(r"--extra (\w+)", command)) == sorted(EXTRAS)


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_each_dependency_is_pinned_as_asked_for(requirement: Requirement) -> None:
    version, hashes = PINNED.get(canonicalize_name(requirement.name), ("none", 0))
    assert hashes, f"run `make lock`: {requirement} is not in deploy/requirements.lock"
    assert version in requirement.specifier, (
        f"run `make lock`: {requirement} is pinned to {version}"
    )


def test_every_pin_has_hashes_and_no_line_names_an_index() -> None:
    assert len(PINNED) == len(re.findall("==", LOCK))
    assert all(hashes for _, hashes in PINNED.values())
    assert not re.search(r"https?://|--find-links|/", LOCK.replace("+", ""))


def test_a_known_vulnerability_fails_the_audit() -> None:
    known = {"id": "PYSEC-1", "fix_versions": ["2.1"]}
    answer = {
        "dependencies": [
            {"name": "a", "version": "2.0", "vulns": [known]},
            {"name": "b", "version": "1.0", "vulns": []},
            {"name": "c", "skip_reason": "unknown to the index"},
        ]
    }
    lines, is_vulnerable = report(json.dumps(answer))
    assert lines == [
        "a 2.0: PYSEC-1, fixed in 2.1",
        "2 of 3 dependencies audited, 1 vulnerabilities",
    ]
    assert is_vulnerable


def test_an_index_that_does_not_answer_fails_nothing() -> None:
    lines, is_vulnerable = report("")
    assert "not audited" in lines[0]
    assert not is_vulnerable


def test_a_mirror_without_data_is_not_called_an_audit() -> None:
    answer = {"dependencies": [{"name": "a", "skip_reason": "not found"}]}
    assert report(json.dumps(answer)) == (
        ["dependencies not audited: the index knows none of the 1"],
        False,
    )
