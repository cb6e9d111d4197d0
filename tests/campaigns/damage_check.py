"""Checks whether a node handled damaged files correctly: a pure function of the observations.

Allowed outcomes are *reported* (the file is named as repaired, quarantined or cut, and counted),
*refused* (the start ends with code 8 and names the file) and *no effect* (the file is still damaged
or missing, and everything works: the file is not needed, or the damaged bytes carry no
information). A file must never be repaired without a report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from quorate.cli.exits import Exit
from quorum.log.layout import META_PROPERTIES_NAME, QUORUM_STATE_NAME, WATERMARK_NAMES
from tests.campaigns.file_damage import Damage

REPORTS = (
    "side_file_repaired", "log_damaged", "checkpoint_quarantined", "checkpoint_damaged",
    "log_start_restored", "torn_tail_cut", "scrub_found", "vote_floor_stored",
)  # fmt: skip
_LOG_REPORTS = ("log_damaged", "torn_tail_cut", "log_start_restored", "scrub_found")
_CHECKPOINT_REPORTS = ("checkpoint_quarantined", "checkpoint_damaged", "scrub_found")
_FOREIGN = ("foreign", "swap", "rename", "copy")
_PROPERTIES = (b"cluster.id", b"directory.id", b"node.id", b"version")
_REPAIRED = re.compile(r"event=side_file_repaired file=(\S+)")


class Outcome(Enum):
    """How a damage ended."""

    REPORTED = "healed and reported"
    REFUSED = "start refused, file named"
    NO_EFFECT = "no effect: the file is not needed"


@dataclass(frozen=True, slots=True)
class Start:
    """What a node did with a damaged directory."""

    lines: Sequence[str]
    """Lines of its log since the damage, including those of starts that were refused."""
    last_lines: Sequence[str]
    """Lines of its log since this start. The metrics of this process count the same repairs."""
    exit_code: int | None
    """The exit code; None if the node became ready."""
    found: Mapping[Path, bytes | None]
    """Content of each damaged file when the node opened its directory; None: no such file."""
    left: Mapping[Path, bytes | None]
    """Content of each damaged file once the node was ready and caught up."""
    repaired_count: float = 0.0
    """Sum of ``quorate_repaired_files_total`` over all kinds."""
    was_clean: bool = False
    """Whether the process before had stopped cleanly, so that its mark covered its whole log."""
    epochs_changed: bool = False


def reports(start: Start) -> list[str]:
    """The lines that report damage."""
    return [line for line in start.lines if any(f"event={each}" in line for each in REPORTS)]


def refusal(faults: Sequence[Damage], start: Start) -> list[str]:
    """Return what is wrong with a refused start; [] if it was refused as promised."""
    found = []
    text = "\n".join(start.last_lines)
    # A whole file of another node counts as wrong usage: its content names its owner.
    is_mistaken = any(
        each.path.name == META_PROPERTIES_NAME and each.manner in _FOREIGN for each in faults
    )
    allowed = {int(Exit.DAMAGED)} | ({int(Exit.USAGE)} if is_mistaken else set())
    if start.exit_code not in allowed:
        found.append(f"ended with {start.exit_code}")
    if not any(each.path.name in text for each in faults):
        found.append("names no damaged file")
    if "Traceback" in text:
        found.append("left a traceback")
    return found


def evaluated(faults: Sequence[Damage], start: Start) -> tuple[Outcome, list[str]]:
    """Return the outcome of damages, and what was wrong with it."""
    if start.exit_code is not None:
        return Outcome.REFUSED, refusal(faults, start)
    reported = reports(start)
    logged = len(_REPAIRED.findall("\n".join(start.last_lines)))
    found = []
    if start.repaired_count != logged:
        found.append(f"{start.repaired_count:g} repairs are counted, {logged} are logged")
    outcome = Outcome.NO_EFFECT
    is_replaced = any(each in line for line in reported for each in ("log_damaged", "log_start"))
    for damage in faults:
        if _is_reported(damage, reported):
            outcome = Outcome.REPORTED
            continue
        if not is_replaced and (problem := _unreported(damage, start)):
            found.append(f"{damage}: {problem}")
    return outcome, found


def _is_reported(damage: Damage, reported: Sequence[str]) -> bool:
    if damage.kind == ".log":
        return any(each in line for line in reported for each in _LOG_REPORTS)
    if damage.kind == ".checkpoint":
        return any(each in line for line in reported for each in _CHECKPOINT_REPORTS)
    return any(damage.path.name in line for line in reported)


def _meaning(content: bytes | None) -> object:
    """Return the properties of an identity file; comments and line ends do not matter."""
    lines = (content or b"").splitlines()
    pairs = {line.strip() for line in lines if line.split(b"=")[0] in _PROPERTIES}
    return pairs or content


def _unreported(damage: Damage, start: Start) -> str:
    """Return why an unreported damage is wrong; empty where it is allowed."""
    found, left = start.found.get(damage.path), start.left.get(damage.path)
    if found == damage.before or found != damage.after:
        # Nothing was changed, or the running process has written its file again meanwhile.
        return ""
    if damage.path.name in (QUORUM_STATE_NAME, META_PROPERTIES_NAME):
        return (
            "" if _meaning(damage.before) == _meaning(found) else "the damaged content was accepted"
        )
    if damage.path.name in WATERMARK_NAMES:
        # It is the content of the other mark file of this disk, intact: nothing needs a repair.
        return "" if damage.is_other_mark else "a mark was replaced without a report"
    if left == found or left is None:
        return ""
    if damage.kind == ".log":
        is_tail = found is not None and left.startswith(found)
        return "" if is_tail and not start.was_clean else "records were restored without a report"
    if damage.path.name == "leader-epoch-checkpoint" and start.epochs_changed:
        return ""
    if damage.kind in (".digest", ".index") and damage.before is None:
        # The damage invented the file's name. A later segment may begin at that offset.
        return ""
    return "the file was repaired without a report"


def lost_writes(written: Mapping[str, str], served: Mapping[str, str | None]) -> list[str]:
    """Return the names whose last acknowledged value a node does not serve."""
    return [name for name, value in written.items() if served.get(name) != value]


def images_differ(seen: Mapping[int, tuple[int, bytes]]) -> bool:
    """Return whether nodes at one offset have different images.

    Args:
        seen: Offset and image digest of each node.
    """
    positions = {offset for offset, _ in seen.values()}
    return len(positions) == 1 and len({digest for _, digest in seen.values()}) > 1
