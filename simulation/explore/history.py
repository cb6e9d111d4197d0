"""What a cluster of a model has committed to so far, and whether a step keeps it.

The simulator's invariants follow one run. Here millions of runs branch, so the past that invariants
need is part of the state: what was committed, in which epochs, and who led. The names of the
properties are those of ``simulation.invariants.table``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorum.types import Epoch, NodeId
from simulation.explore.values import Local
from simulation.harness.core_disk import Log
from simulation.invariants.violation import Violation


@dataclass(frozen=True, slots=True)
class History:
    """Past decisions that no later step may contradict."""

    committed: Log = ()
    commits: tuple[tuple[int, int], ...] = ()
    """Pairs (epoch, end offset committed in it or before), both ascending."""
    leaders: tuple[tuple[int, NodeId], ...] = ()
    """The leader of each epoch, ascending by epoch."""


def after_step(
    history: History, before: Local | None, now: Local, everybody: Sequence[Local]
) -> History:
    """Return the history after a node went from ``before`` to ``now``.

    ``everybody`` includes ``now``.

    Raises:
        Violation: The step contradicts the history, or two logs contradict each other.
    """
    is_news = before is None or before.leads != now.leads or before.epoch != now.epoch
    if now.leads and is_news:
        history = _led(history, now)
    if before is None or before.high_watermark != now.high_watermark:
        history = _committed(history, now, everybody)
    if before is not None and before.durable is not now.durable:
        _uncut(history, before, now)
    if before is None or before.log is not now.log:
        for other in everybody:
            if other.log is not now.log:
                _matching(now, other)
    return history


def pruned(history: History, floor: Epoch, last_epoch: Epoch) -> History:
    """Return the history without what no future step can contradict.

    No node can become leader of an epoch below ``floor``, which every disk has reached. An epoch
    with a leader cannot get another one.
    """
    leaders = tuple(each for each in history.leaders if each[0] >= floor)
    below = [each for each in history.commits if each[0] < floor]
    if len(below) <= 1 and len(leaders) == len(history.leaders) and floor < last_epoch:
        return history
    commits = history.commits[max(0, len(below) - 1) :]
    if floor >= last_epoch and leaders:
        commits = ()
    if (leaders, commits) == (history.leaders, history.commits):
        return history
    return History(history.committed, commits, leaders)


def _led(history: History, now: Local) -> History:
    leaders = dict(history.leaders)
    if leaders.setdefault(now.epoch, now.node_id) != now.node_id:
        raise Violation(
            "one-leader",
            "two leaders of one epoch",
            epoch=now.epoch,
            leaders=(leaders[now.epoch], now.node_id),
        )
    for epoch, end_offset in history.commits:
        if epoch < now.epoch:
            _complete(history, now, end_offset, epoch)
    return History(history.committed, history.commits, tuple(sorted(leaders.items())))


def _complete(history: History, leader: Local, end_offset: int, epoch: int) -> None:
    if leader.log[:end_offset] != history.committed[:end_offset]:
        raise Violation(
            "leader-completeness",
            "a leader lacks committed records",
            node=leader.node_id,
            epoch=leader.epoch,
            committed=end_offset,
            committed_in=epoch,
            log=short(leader.log),
        )


def _committed(history: History, now: Local, everybody: Sequence[Local]) -> History:
    end_offset = now.high_watermark
    known = history.committed
    both = min(end_offset, len(known))
    if len(now.log) < end_offset or now.log[:both] != known[:both]:
        raise Violation(
            "committed-stays",
            "two nodes have committed different records",
            node=now.node_id,
            high_watermark=end_offset,
            log=short(now.log),
            committed=short(known),
        )
    if end_offset <= len(known):
        return history
    if now.leads:
        holding = [
            each.node_id
            for each in everybody
            if each.node_id in now.voters and each.durable[:end_offset] == now.log[:end_offset]
        ]
        if len(holding) <= len(now.voters) // 2:
            raise Violation(
                "committed-on-majority",
                "fewer than a majority of the voters have it on disk",
                node=now.node_id,
                high_watermark=end_offset,
                voters=now.voters,
                holding=holding,
            )
    ends = dict(history.commits)
    ends[now.epoch] = end_offset
    found = History(now.log[:end_offset], tuple(sorted(ends.items())), history.leaders)
    for leader in everybody:
        if leader.leads and leader.epoch > now.epoch:
            _complete(found, leader, end_offset, now.epoch)
    return found


def _uncut(history: History, before: Local, now: Local) -> None:
    """Check that committed records stay on a disk that has them."""
    for offset, entry in enumerate(history.committed[: len(before.durable)]):
        if before.durable[offset] != entry:
            return
        if offset >= len(now.durable) or now.durable[offset] != entry:
            raise Violation(
                "committed-stays",
                "a committed record is truncated on a disk",
                node=now.node_id,
                offset=offset,
                before=short(before.durable),
                after=short(now.durable),
            )


def _matching(one: Local, other: Local) -> None:
    for offset in range(min(len(one.log), len(other.log)) - 1, -1, -1):
        if one.log[offset][0] == other.log[offset][0]:
            if one.log[: offset + 1] != other.log[: offset + 1]:
                raise Violation(
                    "log-matching",
                    "equal epochs at an offset, different records up to it",
                    nodes=(one.node_id, other.node_id),
                    offset=offset,
                    logs=(short(one.log), short(other.log)),
                )
            return


def short(log: Log) -> str:
    """Return a log as its epochs, with ``v`` and the ids after each voters record."""
    parts = []
    for epoch, voters in log:
        ids = "" if voters is None else "v" + "".join(str(each.key.id) for each in voters[0])
        parts.append(f"{epoch}{ids}")
    return "[" + " ".join(parts) + "]"


__all__ = ["History", "after_step", "short"]
