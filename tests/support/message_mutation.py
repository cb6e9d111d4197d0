"""Mutated messages of the core, drawn from a seeded random source.

Every field of every message can get any value of its kind: numbers at and beyond their bounds,
identities of the wrong length, empty, doubled and huge tuples, and values of other messages.
"""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass, replace
from typing import Any

from quorum.core.messages.fetch_messages import Subtree
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.errors import ErrorCode
from quorum.types import DigestAt, Endpoint, EpochStart, OffsetAndEpoch, ReplicaKey, Voter

NUMBERS = (
    -(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 3, 31, 1 << 15, (1 << 31) - 2, (1 << 31) - 1,
    1 << 31, (1 << 63) - 1, 1 << 63, 1 << 70,
)  # fmt: skip
HUGE = 5_000
"""Number of items of a huge tuple."""
_MADE: dict[str, tuple[Any, ...]] = {
    "diverging": (OffsetAndEpoch(0, 0), OffsetAndEpoch(1, 1), OffsetAndEpoch(-1, 3)),
    "snapshot_id": (OffsetAndEpoch(0, 0), OffsetAndEpoch(5, 1), OffsetAndEpoch(1 << 62, 1)),
    "subtree": (Subtree(0, 1), Subtree(-1, -1), Subtree(1 << 62, 0)),
    "records": (
        ReceivedRecords(0, 1, (EpochStart(1, 0),), (), b"x"),
        ReceivedRecords(5, 3, (), (), b""),
        ReceivedRecords(-1, 1 << 62, (EpochStart(9, -1), EpochStart(2, 7)), (), b""),
        ReceivedRecords(0, 2, (EpochStart(1, 0),), (VotersAt(0, ()), VotersAt(0, ())), b""),
    ),
}


class Mutator:
    """Draws mutants; one seed gives one sequence."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def mutate(self, message: Any) -> Any:
        """Return a copy of ``message`` with one to three fields replaced."""
        names = [field.name for field in fields(message)]
        chosen = self._rng.sample(names, min(len(names), self._rng.choice((1, 1, 1, 2, 3))))
        return replace(
            message, **{name: self.value(name, getattr(message, name)) for name in chosen}
        )

    def value(self, name: str, value: Any) -> Any:
        """Return another value of the same kind."""
        rng = self._rng
        # A core sees no bytes of records, only their description (``WireNode``).
        if name in _MADE and (name == "records" or rng.random() < 0.7):
            return rng.choice((None, *_MADE[name]) if name != "snapshot_id" else _MADE[name])
        if isinstance(value, bool):
            return not value
        if isinstance(value, ErrorCode):
            return rng.choice(list(ErrorCode))
        if isinstance(value, int):
            near = value + rng.choice((-2, -1, 1, 2))
            return rng.choice((*NUMBERS, near, near, near, rng.randrange(1 << 40)))
        if isinstance(value, bytes):
            return rng.choice((b"", b"x", value[:-1], value + b"y", rng.randbytes(16), bytes(16)))
        if isinstance(value, str):
            return rng.choice(("", "another", value + "x", "x" * 300, "\ud800", "\0"))
        if isinstance(value, tuple):
            return self._tuple(name, value)
        if is_dataclass(value) and not isinstance(value, type):
            return self.mutate(value)
        return value

    def _tuple(self, name: str, value: tuple[Any, ...]) -> tuple[Any, ...]:
        rng = self._rng
        item = rng.choice(value) if value else self._item(name)
        return rng.choice(
            (
                (),
                (item,),
                (*value, item),
                (item,) * HUGE,
                tuple(reversed(value)),
                (self._inside(item), *value[1:]),
            )
        )

    def _inside(self, item: Any) -> Any:
        """Change an item; a pair stays a pair, as the decoder would build it."""
        if isinstance(item, tuple):
            at = self._rng.randrange(len(item))
            return (*item[:at], self.value("", item[at]), *item[at + 1 :])
        return self.value("", item)

    def _item(self, name: str) -> Any:
        key = ReplicaKey(self._rng.randrange(-1, 9), self._rng.randbytes(16))
        match name:
            case "leader_endpoints" | "endpoints":
                return Endpoint("CONTROLLER", "elsewhere", 1)
            case "preferred_successors" | "path" | "removed":
                return key
            case "voter_list":
                return (key.id, key.directory_id)
            case "offsets":
                return 0
            case "points" | "own":
                return DigestAt(0, b"d")
            case "voters":
                return Voter(key)
            case _:
                return 0
