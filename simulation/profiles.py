"""Profiles: which faults a run has, how often they come, and how much they may destroy.

Names of faults are those of ``faults.table``. For message and disk faults a profile lists the
values that a seed chooses from, so that some seeds are mild and some are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """One selection of faults."""

    name: str
    about: str
    budget: str
    """How much storage faults may destroy, in words; ``Budget`` enforces it."""
    acts: Mapping[str, int]
    """Faults of the fault maker, by weight."""
    loss: tuple[float, ...] = (0.0, 0.01)
    duplication: tuple[float, ...] = (0.0, 0.01)
    straggle: tuple[float, ...] = (0.0, 0.02)
    disk_stall: tuple[float, ...] = (0.0, 0.01)
    fault_every_us: tuple[int, ...] = (30_000, 80_000, 200_000)
    drift_per_mille: tuple[int, ...] = (0, 20)
    garbage: tuple[float, ...] = (0.0,)
    """Copies of messages that receivers must refuse or ignore (``garbage``)."""
    observers: tuple[int, ...] = ()
    """Allowed numbers of observers unless the options give some; empty: the usual ones."""
    disk_groups: tuple[int, ...] = (0,)
    """Most groups that one disk pass completes; 0 for all that wait."""
    gather_us: tuple[int, ...] = (0,)
    """How long a replica that does not lead gathers committed records, as a server does."""
    chunk_bytes: int = 0
    """Length of a snapshot chunk; 0 lets the seed draw it."""
    relayed: tuple[float, ...] = ()
    """The share of observers that fetch from others; empty: none."""


_NOTHING_LOST = "no disk loses what it completed"
_MINORITY = (
    "at most a minority of the voters, whole disks and flipped bits together, is without what it "
    "had completed until it is repaired"
)

_NETWORK = {
    "partition": 14,
    "isolate-leader": 6,
    "majority-ring": 4,
    "flap": 3,
    "slow-link": 4,
    "heal": 12,
    "cut-clients": 4,
}
_CRASH = {
    "crash": 18,
    "crash-leader": 6,
    "crash-all": 2,
    "crash-loop": 2,
    "power-in-call": 6,
    "power-in-recovery": 4,
    "start": 20,
    "shut-down": 3,
}
_DISK = {"failing-sync": 3, "full-disk": 3, "unreadable": 4, "hang": 3, "slow-disk": 3}
_CLOCKS = {"wall-step": 2, "strobe": 2, "drift": 2, "jump": 2}
_ANY = {"pause": 6, "resign": 4, "transfer": 6, "checkpoint": 10}

_GATHERED = (0, 2_000, 20_000)
_ROUGH = (0.0, 0.01, 0.05)
_LATE = (0.0, 0.02, 0.1)


def _scaled(acts: Mapping[str, int], factor: int) -> dict[str, int]:
    return {name: weight * factor for name, weight in acts.items()}


_EVERYTHING = {
    **_NETWORK,
    **_CRASH,
    **_DISK,
    **_CLOCKS,
    **_ANY,
    "corruption": 20,
    "corruption-running": 20,
    "swap": 20,
    "wipe": 4,
    "reformat": 8,
    "change-voters": 16,
    "clone": 6,
    "older-release": 8,
}
_RELAYS = {"crash-relay": 4, "pause-relay": 4, "isolate-relay": 5, "move-observer": 4}
_NOT_LOOKED_AFTER = ("wipe", "reformat", "change-voters", "clone", "older-release")

PROFILES: dict[str, Profile] = {
    each.name: each
    for each in (
        Profile(
            "default",
            "a few faults of every kind, on maintained hardware",
            f"{_MINORITY}; no disk or release is replaced",
            {name: weight for name, weight in _EVERYTHING.items() if name not in _NOT_LOOKED_AFTER},
            disk_stall=(0.0, 0.01, 0.05),
            drift_per_mille=(0, 20, 100),
            loss=_ROUGH,
            duplication=_ROUGH,
            straggle=_LATE,
        ),
        Profile(
            "network",
            "messages lost, late, duplicated, reordered; links cut in every shape; no crashes",
            _NOTHING_LOST,
            {**_NETWORK, "pause": 4, "resign": 4, "transfer": 6, "checkpoint": 10},
            loss=_ROUGH,
            duplication=_ROUGH,
            straggle=_LATE,
        ),
        Profile(
            "crash",
            "processes and machines crash alone, together and repeatedly; power fails during calls",
            f"{_NOTHING_LOST}; unsynced bytes and names are lost, torn or reordered",
            {**_scaled(_CRASH, 2), "partition": 4, "heal": 8, "checkpoint": 10},
            gather_us=_GATHERED,
        ),
        Profile(
            "membership",
            "voters are added and removed while links fail and processes die",
            _NOTHING_LOST,
            {
                "change-voters": 60,
                "crash": 10,
                "crash-leader": 3,
                "start": 20,
                "partition": 8,
                "isolate-leader": 3,
                "heal": 16,
                "resign": 4,
                "transfer": 6,
                "checkpoint": 10,
            },
            loss=_ROUGH,
        ),
        Profile(
            "interleavings",
            "single messages lost, doubled, reordered; disks complete one group at a time; voters "
            "come and go",
            _NOTHING_LOST,
            {
                "change-voters": 60,
                "crash": 8,
                "crash-leader": 6,
                "start": 20,
                "isolate-leader": 4,
                "heal": 16,
                "resign": 6,
                "transfer": 8,
                "checkpoint": 6,
            },
            fault_every_us=(15_000, 40_000),
            loss=(0.01, 0.05, 0.2),
            duplication=(0.05, 0.2),
            straggle=(0.05, 0.2, 0.5),
            observers=(1, 1, 2),
            disk_groups=(1,),
        ),
        Profile(
            "disk",
            "syncs and reads fail, disks fill up, hang and become slow",
            f"{_NOTHING_LOST}; a failed sync drops what it should have kept",
            {**_scaled(_DISK, 4), "crash": 6, "start": 20, "power-in-call": 4, "checkpoint": 10},
            disk_stall=(0.01, 0.05, 0.2),
        ),
        Profile(
            "corruption",
            "bits flip in files of every kind, files are swapped, and whole disks are replaced",
            _MINORITY,
            {
                "corruption": 30,
                "corruption-running": 30,
                "swap": 30,
                "wipe": 6,
                "reformat": 20,
                "change-voters": 10,
                "crash": 24,
                "crash-leader": 6,
                "start": 10,
                "checkpoint": 14,
            },
            fault_every_us=(15_000, 40_000, 100_000),
        ),
        Profile(
            "files",
            "any two or three files of a node are damaged at once, side files and marks among them",
            _MINORITY,
            {
                "damage-files": 60,
                "misname-checkpoint": 60,
                "crash": 24,
                "crash-leader": 8,
                "crash-all": 10,
                "start": 10,
                "checkpoint": 10,
            },
            fault_every_us=(15_000, 40_000),
        ),
        Profile(
            "clocks",
            "clocks drift, jump, are set back and forth; processes stop for a while or run slowly",
            _NOTHING_LOST,
            {
                **_scaled(_CLOCKS, 6),
                "slow-calls": 20,
                "change-level": 15,
                "pause": 14,
                "isolate-leader": 4,
                "heal": 8,
                "crash": 6,
                "start": 18,
                "checkpoint": 8,
            },
            drift_per_mille=(0, 20, 100),
            gather_us=_GATHERED,
        ),
        Profile(
            "detection",
            "voters' disks formatted again by the same command, or put back from an old copy",
            f"{_MINORITY}; a disk from the past is outside the guarantees, and is detected",
            {
                "reformat": 10,
                "roll-back": 40,
                "crash": 12,
                "start": 10,
                "isolate-leader": 6,
                "heal": 8,
                "checkpoint": 6,
            },
            fault_every_us=(15_000, 40_000),
        ),
        Profile(
            "history",
            "a disk returns with forged batches in its log; digests and side files match them",
            f"{_MINORITY}; a disk with a forged history counts until the end",
            {
                "forge": 60,
                "crash": 20,
                "crash-leader": 10,
                "crash-all": 6,
                "start": 20,
                "isolate-leader": 4,
                "heal": 10,
                "checkpoint": 4,
            },
        ),
        Profile(
            "clones",
            "copies of voters' disks run beside their originals; processes die, links fail",
            f"{_NOTHING_LOST}; a copy is outside the guarantees, and is refused",
            {
                "clone": 40,
                "crash": 6,
                "crash-leader": 4,
                "start": 20,
                "isolate-leader": 8,
                "resign": 8,
                "transfer": 8,
                "heal": 20,
                "checkpoint": 8,
            },
            fault_every_us=(15_000, 40_000),
        ),
        Profile(
            "garbage",
            "messages arrive a second time with something in them that must be refused or ignored; "
            "a stranger forges requests, of elections and for other voters, and answers whom it "
            "leads astray",
            _NOTHING_LOST,
            {
                **_scaled(_CRASH, 1),
                "partition": 6,
                "heal": 8,
                "checkpoint": 10,
                "resign": 5,
                "transfer": 5,
                "forge-request": 150,
                "forge-change": 40,
            },
            fault_every_us=(10_000, 30_000, 80_000),
            garbage=(0.1, 0.3, 0.6),
        ),
        Profile(
            "relays",
            "observers fetch from observers, also in loops; relays crash, pause and lose contact",
            _NOTHING_LOST,
            {
                **{name: 4 * weight for name, weight in _RELAYS.items()},
                "crash": 6,
                "crash-leader": 4,
                "start": 10,
                "partition": 8,
                "isolate-leader": 3,
                "heal": 20,
                "pause": 4,
                "change-voters": 4,
                "checkpoint": 12,
            },
            observers=(2, 3, 4, 5),
            relayed=(0.6, 1.0),
            loss=_ROUGH,
            straggle=_LATE,
        ),
        Profile(
            "downloads",
            "replicas are left behind, and die while they download a checkpoint; bits flip in it",
            f"{_NOTHING_LOST}; a part file may lose anything",
            {
                "crash-downloading": 60,
                "crash": 4,
                "crash-leader": 6,
                "start": 20,
                "isolate-leader": 3,
                "heal": 8,
                "checkpoint": 6,
            },
            fault_every_us=(30_000, 80_000),
            chunk_bytes=120,
        ),
        Profile(
            "releases",
            "nodes are rolled back to a release that does not know some records, and forward "
            "again; nodes are started with the other record codec",
            f"{_NOTHING_LOST}; one node at a time is of an older release",
            {
                "older-release": 60,
                "other-codec": 10,
                "crash": 6,
                "crash-leader": 6,
                "start": 20,
                "isolate-leader": 6,
                "resign": 8,
                "transfer": 20,
                "heal": 16,
                "checkpoint": 8,
            },
            fault_every_us=(15_000, 40_000, 100_000),
        ),
        Profile(
            "everything",
            "all of it, twice as often",
            _MINORITY,
            {**_EVERYTHING, **_RELAYS},
            observers=(0, 0, 0, 1, 2, 3, 4),
            relayed=(0.0, 0.7, 1.0),
            disk_stall=(0.0, 0.01, 0.05),
            fault_every_us=(15_000, 40_000, 100_000),
            drift_per_mille=(0, 20, 100),
            loss=_ROUGH,
            duplication=_ROUGH,
            straggle=_LATE,
            gather_us=_GATHERED,
        ),
    )
}
