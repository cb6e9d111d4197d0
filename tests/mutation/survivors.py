"""Mutants that no test can or need notice, each with its reason."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "survivors.toml"


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant, identified by its change, not by a number that depends on the code around it."""

    function: str
    """``module.function`` or ``module.Class.method`` below ``quorum.core``."""
    change: str
    """The changed lines, ``- before`` and ``+ after``, without their indentation."""


def reasons(file: Path = FILE) -> dict[Survivor, str]:
    """Return every listed survivor with the reason that no test can or need notice it.

    Raises:
        ValueError: an entry without a reason, or twice.
    """
    found: dict[Survivor, str] = {}
    for entry in tomllib.loads(file.read_text(encoding="utf-8")).get("survivor", []):
        survivor = Survivor(entry["function"], entry["change"].strip())
        if not entry["reason"].strip() or survivor in found:
            raise ValueError(f"{file.name}: {survivor} needs one entry, with a reason")
        found[survivor] = entry["reason"]
    return found


def listed(file: Path = FILE) -> frozenset[Survivor]:
    """Return the survivors that are listed."""
    return frozenset(reasons(file))
