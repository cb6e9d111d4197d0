"""Print which dependencies have a known vulnerability, and fail if any has one.

    python -m tests.gate.vulnerabilities ANSWER.json requirements.lock

``ANSWER.json`` is that of pip-audit, which asks the index about each pinned release. A mirror may
have no data by release. Then the page of the project is asked: it has the vulnerabilities of the
newest release, which says all about a dependency that is pinned to it. What neither knows was not
checked: it is named, and fails nothing.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

INDEX: Final = "https://pypi.org/pypi"
SECONDS_MAX: Final = 10.0
_AT_A_TIME: Final = 4
_PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


@dataclass(slots=True)
class Audit:
    """What is known of the pins, by name."""

    by_release: dict[str, list[str]] = field(default_factory=dict)
    by_project: dict[str, list[str]] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)
    """Why."""


def pins_of(lock: str) -> dict[str, str]:
    """Return the version of each dependency of a lock file."""
    return dict(_PIN.findall(lock))


def audit(pins: Mapping[str, str], answer: str, ask: Callable[[str], Any]) -> Audit:
    """Return what pip-audit's answer has, completed with what ``ask`` returns of projects."""
    found = Audit()
    for each in json.loads(answer)["dependencies"] if answer.strip() else ():
        if "skip_reason" not in each and each["name"] in pins:
            found.by_release[each["name"]] = [
                _line(each["name"], each["version"], known["id"], known["fix_versions"])
                for known in each["vulns"]
            ]
    left = [name for name in pins if name not in found.by_release]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        for name, project in zip(left, pool.map(ask, left), strict=True):
            if isinstance(project, str):
                found.unchecked[name] = project
            elif project["info"]["version"] != pins[name]:
                newest = project["info"]["version"]
                found.unchecked[name] = f"is pinned to {pins[name]}, and the newest is {newest}"
            else:
                found.by_project[name] = [
                    _line(name, pins[name], known["id"], known["fixed_in"])
                    for known in project["vulnerabilities"]
                    if not known.get("withdrawn")
                ]
    return found


def _line(name: str, version: str, vulnerability: str, fixed_in: list[str]) -> str:
    return f"{name} {version}: {vulnerability}, fixed in {', '.join(fixed_in) or 'no release'}"


def report(found: Audit) -> tuple[list[str], bool]:
    """Return the lines to print, and whether a vulnerability is known."""
    known = [
        line for by_name in (found.by_release, found.by_project) for each in by_name.values()
        for line in each
    ]  # fmt: skip
    checked, by_project = len(found.by_release) + len(found.by_project), len(found.by_project)
    why = [f"not checked: {name} {reason}" for name, reason in sorted(found.unchecked.items())]
    if not checked:
        reasons = sorted(set(found.unchecked.values()))
        return [f"NOTHING WAS CHECKED: {'; '.join(reasons) or 'the lock has no pins'}"], False
    summary = (
        f"{checked} of {checked + len(why)} dependencies checked ({by_project} of them as the "
        f"newest release of their project), {len(known)} vulnerabilities"
    )
    return [*known, *why, summary], bool(known)


def project_of(name: str) -> Any:
    """Return what the index has of a project, or a sentence why there is nothing."""
    try:
        with urllib.request.urlopen(f"{INDEX}/{name}/json", timeout=SECONDS_MAX) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        return f"the index answered {error.code}"
    except (OSError, ValueError):
        return "the index did not answer"
    return found if "vulnerabilities" in found else "the index has no data about vulnerabilities"


def main() -> None:
    """Print the report of the two files that the command line names."""
    answer, lock = Path(sys.argv[1]), Path(sys.argv[2])
    text = answer.read_text("utf-8") if answer.exists() else ""
    lines, is_vulnerable = report(audit(pins_of(lock.read_text("utf-8")), text, project_of))
    print(*lines, sep="\n")
    if is_vulnerable:
        print("error: raise the lower bound in pyproject.toml and run `make lock`", file=sys.stderr)
    sys.exit(is_vulnerable)


if __name__ == "__main__":
    main()
