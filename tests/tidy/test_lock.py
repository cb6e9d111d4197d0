"""The lock pins what pyproject.toml asks for, by hash. The audit reads what pip-audit prints."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.gate.vulnerabilities import audit, pins_of, report

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


PINS = {"a": "2.0", "b": "1.0", "c": "3.0"}
KNOWN = {"id": "PYSEC-1", "fix_versions": ["2.1"]}
SKIPPED = {"name": "c", "skip_reason": "unknown to the index"}


def project(version: str, *known: dict[str, object]) -> dict[str, object]:
    return {"info": {"version": version}, "vulnerabilities": list(known)}


def audited(*dependencies: dict[str, object], **projects: object) -> tuple[list[str], bool]:
    answer = json.dumps({"dependencies": dependencies}) if dependencies else ""
    return report(audit(PINS, answer, lambda name: projects.get(name, "the index answered 404")))


def test_pins_of_a_lock() -> None:
    assert pins_of("a-b==2.0 \\\n    --hash=sha256:12 \\\n    # via c\nd==1\n") == {
        "a-b": "2.0",
        "d": "1",
    }


def test_a_known_vulnerability_fails_the_audit() -> None:
    lines, is_vulnerable = audited(
        {"name": "a", "version": "2.0", "vulns": [KNOWN]},
        {"name": "b", "version": "1.0", "vulns": []},
        SKIPPED,
    )
    assert lines == [
        "a 2.0: PYSEC-1, fixed in 2.1",
        "not checked: c the index answered 404",
        "2 of 3 dependencies checked (0 of them as the newest release of their project), "
        "1 vulnerabilities",
    ]
    assert is_vulnerable


def test_the_newest_release_is_checked_by_the_page_of_its_project() -> None:
    lines, is_vulnerable = audited(
        SKIPPED,
        a=project("2.0"),
        b=project("1.1", {"id": "X", "fixed_in": []}),
        c=project(
            "3.0",
            {"id": "PYSEC-2", "fixed_in": [], "withdrawn": None},
            {"id": "PYSEC-3", "fixed_in": [], "withdrawn": "2026-01-01T00:00:00Z"},
        ),
    )
    assert lines == [
        "c 3.0: PYSEC-2, fixed in no release",
        "not checked: b is pinned to 1.0, and the newest is 1.1",
        "2 of 3 dependencies checked (2 of them as the newest release of their project), "
        "1 vulnerabilities",
    ]
    assert is_vulnerable


def test_an_audit_of_nothing_says_so_and_fails_nothing() -> None:
    assert audited(SKIPPED) == (["NOTHING WAS CHECKED: the index answered 404"], False)
    assert audited() == (["NOTHING WAS CHECKED: the index answered 404"], False)
