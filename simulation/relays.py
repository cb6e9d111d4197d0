"""Which observers of a run fetch from others: chains, trees, and loops that nobody should make."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from quorum.config import QuorumConfig
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.types import NodeId

ALIAS = -100
"""Relays are known by their addresses, as in production, so by ids of their own until they answer:
node n is ``ALIAS - n``."""
_DEAF_SHARE = 0.1
"""Of the observers that others fetch from, those that were not told to serve."""


@dataclass(slots=True)
class Relays:
    """What the operators of a run have told each observer. Plans change with a restart only."""

    plans: dict[NodeId, RelayPlan]
    observers: tuple[NodeId, ...] = ()

    @staticmethod
    def draw(rng: random.Random, observers: Sequence[NodeId], share: float) -> Relays:
        """Lay out a share of the observers; the others fetch from the leader and serve."""
        count = round(share * len(observers))
        chosen = tuple(observers)
        if count < 1 or len(chosen) < 2:
            return Relays({})
        layout = rng.choice(_LAYOUTS)
        above = layout(rng, chosen)
        first = len(chosen) - count
        plans = {
            each: RelayPlan(
                serves=rng.random() >= _DEAF_SHARE,
                fetch_from=_by_address(above[each] if place >= first or layout is _ring else ()),
            )
            for place, each in enumerate(chosen)
        }
        return Relays(plans, chosen)

    def of(self, node_id: NodeId) -> RelayPlan:
        """What a node goes by when it starts."""
        return self.plans.get(node_id, NO_RELAYS)

    def relays(self) -> list[NodeId]:
        """Whom somebody fetches from, or should."""
        return sorted({ALIAS - each for plan in self.plans.values() for each in plan.fetch_from})

    def move(self, rng: random.Random, node_id: NodeId) -> None:
        """Send an observer elsewhere, from its next start on: to others, or to the leader."""
        others = [each for each in self.observers if each != node_id]
        above = tuple(rng.sample(others, min(len(others), rng.choice((0, 1, 1, 2)))))
        self.plans[node_id] = RelayPlan(rng.random() >= _DEAF_SHARE, _by_address(above))


def _by_address(ids: Sequence[NodeId]) -> tuple[NodeId, ...]:
    return tuple(ALIAS - each for each in ids)


def hurried(config: QuorumConfig, rng: random.Random) -> QuorumConfig:
    """Settings of relays that fit a run of seconds, and now and then shorter chains than laid."""
    return replace(
        config,
        relay_hops_max=rng.choice((1, 2, 4)),
        relay_age_max_ms=rng.choice((150, 600)),
        relay_patience_ms=rng.choice((30, 120)),
        relay_retry_ms=rng.choice((60, 300)),
    )


def _chain(rng: random.Random, ids: Sequence[NodeId]) -> dict[NodeId, tuple[NodeId, ...]]:
    """Each fetches from the one before it, some from the one before that as well."""
    above: dict[NodeId, tuple[NodeId, ...]] = {ids[0]: ()}
    for place in range(1, len(ids)):
        spare = ids[max(0, place - 2) : place - 1] if rng.random() < 0.5 else ()
        above[ids[place]] = (ids[place - 1], *spare)
    return above


def _tree(rng: random.Random, ids: Sequence[NodeId]) -> dict[NodeId, tuple[NodeId, ...]]:
    """Two at the top, the rest below one or both of them."""
    top = ids[:2] if len(ids) > 2 else ids[:1]
    above: dict[NodeId, tuple[NodeId, ...]] = dict.fromkeys(top, ())
    for each in ids[len(top) :]:
        above[each] = tuple(rng.sample(top, rng.randint(1, len(top))))
    return above


def _ring(rng: random.Random, ids: Sequence[NodeId]) -> dict[NodeId, tuple[NodeId, ...]]:
    """Somebody has laid them out in a circle, which gets its records from nowhere."""
    del rng
    return {each: (ids[place - 1],) for place, each in enumerate(ids)}


def _any(rng: random.Random, ids: Sequence[NodeId]) -> dict[NodeId, tuple[NodeId, ...]]:
    """Everybody below anybody."""
    above = {}
    for each in ids:
        others = [other for other in ids if other != each]
        above[each] = tuple(rng.sample(others, min(len(others), rng.randint(1, 2))))
    return above


Layout = Callable[[random.Random, Sequence[NodeId]], dict[NodeId, tuple[NodeId, ...]]]
_LAYOUTS: tuple[Layout, ...] = (_chain, _chain, _chain, _tree, _tree, _ring, _any)
