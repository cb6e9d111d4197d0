"""The targets of the figures beside other systems, and what a run says about each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

_Figures: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """One figure with its bound. ``value`` returns None if the run did not measure it."""

    text: str
    value: Callable[[_Figures], float | None]
    bound: float
    is_at_most: bool = False

    def is_met(self, value: float) -> bool:
        """Return whether the value is within the bound, which is included."""
        return value <= self.bound if self.is_at_most else value >= self.bound

    @property
    def aim(self) -> str:
        """The bound in words."""
        return f"{'≤' if self.is_at_most else '≥'} {self.bound:g}"


def _row(rows: Sequence[Mapping[str, Any]], **wanted: object) -> Mapping[str, Any] | None:
    return next(
        (row for row in rows if all(row[key] == value for key, value in wanted.items())), None
    )


def _ratio(figures: _Figures, part: str, peer: str, key: str, **wanted: object) -> float | None:
    rows = figures["peers"].get(peer, {}).get(part, ())
    row = _row(rows, **wanted)
    return None if row is None else row.get(key)


def _node_us(figures: _Figures, writers: int) -> float | None:
    row = _row(figures.get("writes", ()), clients=writers)
    return None if row is None else row["leader_us"] + sum(row["followers_us"])


def _figure(figures: _Figures, part: str, key: str) -> float | None:
    return figures.get(part, {}).get(key)


def _rate(text: str, bound: float, part: str, peer: str, **wanted: object) -> Target:
    return Target(text, partial(_ratio, part=part, peer=peer, key="rate_ratio", **wanted), bound)


def _node_time(text: str, bound: float, writers: int) -> Target:
    return Target(text, partial(_node_us, writers=writers), bound, is_at_most=True)


TARGETS = (
    _rate("writes/s by ZooKeeper's, 16 writers", 0.9, "writes", "zookeeper", clients=16),
    _rate("writes/s by ZooKeeper's, 64 writers", 1.0, "writes", "zookeeper", clients=64),
    _rate("writes/s by ZooKeeper's, 256 writers", 1.3, "writes", "zookeeper", clients=256),
    _rate("writes/s by etcd's, 64 writers", 1.8, "writes", "etcd", clients=64),
    _rate("writes/s by etcd's, 256 writers", 2.0, "writes", "etcd", clients=256),
    Target(
        "p50 of a lone write by etcd's",
        partial(_ratio, part="writes", peer="etcd", key="p50_ratio", clients=1),
        1.0,
        is_at_most=True,
    ),
    _rate(
        "linearizable reads/s at the leader by etcd's", 1.5, "reads", "etcd",
        kind="linearizable", place="leader",
    ),
    _rate(
        "linearizable reads/s at a follower by etcd's", 1.0, "reads", "etcd",
        kind="linearizable", place="follower",
    ),
    _rate("local reads/s by etcd's serializable", 1.5, "reads", "etcd", kind="local"),
    _rate("writes/s under watchers by etcd's", 1.5, "watchers", "etcd", kind="watch"),
    _node_time("µs per write of all nodes, 64 writers", 75, writers=64),
    _node_time("µs per write of all nodes, 256 writers", 55, writers=256),
    Target(
        "memory of an idle node, MB",
        partial(_figure, part="idle", key="resident_mb"),
        60,
        is_at_most=True,
    ),
    Target(
        "p50 of a fail-over, ms",
        partial(_figure, part="failover", key="p50_ms"),
        150,
        is_at_most=True,
    ),
)  # fmt: skip


def target_rows(figures: _Figures) -> list[list[str]]:
    """Return a table: a head, and a row for each target that the run measured."""
    rows = [["target", "aim", "measured", "met"]]
    for target in TARGETS:
        value = target.value(figures)
        if value is not None:
            met = "yes" if target.is_met(value) else "no"
            rows.append([target.text, target.aim, f"{value:.2f}", met])
    return rows
