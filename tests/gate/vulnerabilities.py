"""Print what pip-audit found, and fail if a dependency has a known vulnerability.

    python -m tests.gate.vulnerabilities ANSWER.json

A dependency that the index does not know was not audited: it is counted, and fails nothing. If it
knows none, it is a mirror without data about vulnerabilities. An answer that is missing or empty
means that the index could not be reached.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def report(answer: str) -> tuple[list[str], bool]:
    """Return the lines to print, and whether a vulnerability is known."""
    if not answer.strip():
        return ["dependencies not audited: the package index did not answer"], False
    found = json.loads(answer)["dependencies"]
    audited = [each for each in found if "skip_reason" not in each]
    if found and not audited:
        return [f"dependencies not audited: the index knows none of the {len(found)}"], False
    lines = [
        f"{each['name']} {each['version']}: {known['id']}, fixed in "
        f"{', '.join(known['fix_versions']) or 'no release'}"
        for each in audited
        for known in each["vulns"]
    ]
    summary = f"{len(audited)} of {len(found)} dependencies audited, {len(lines)} vulnerabilities"
    return [*lines, summary], bool(lines)


def main() -> None:
    """Print the report of the file that the command line names."""
    path = Path(sys.argv[1])
    lines, is_vulnerable = report(path.read_text("utf-8") if path.exists() else "")
    print(*lines, sep="\n")
    if is_vulnerable:
        print("error: raise the lower bound in pyproject.toml and run `make lock`", file=sys.stderr)
    sys.exit(is_vulnerable)


if __name__ == "__main__":
    main()
