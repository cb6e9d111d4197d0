"""Which observers of a run fetch from others: chains, trees, and misconfigured loops."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from quorum.config import QuorumConfig
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.types import NodeId

ALIAS = -100
"""Relays are known by their addresses, as in production, so by ids of their own until they answer.

The alias of node n is ``ALIAS - n``.
"""
_DEAF_SHARE = 0.1
"""Share of the upstream observers that are not configured to serve."""


@dataclass(slots=True)
class Relays:
    """The relay configuration of each observer. Plans change only with a restart."""

    plans: dict[NodeId, RelayPlan]
    observers: tuple[NodeId, ...] = ()

    @staticmethod
    def draw(rng: random.Random, observers: Sequence[NodeId], share: float) -> Relays:
        """Plan a share of the observers; the others fetch from the leader and serve."""
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
        """Return the plan that a node starts with."""
        return self.plans.get(node_id, NO_RELAYS)

    def relays(self) -> list[NodeId]:
        """Return the nodes that are an upstream of any plan."""
        return sorted({ALIAS - each for plan in self.plans.values() for each in plan.fetch_from})

    def move(self, rng: random.Random, node_id: NodeId) -> None:
        """Give an observer another plan from its next start on: other relays, or the leader."""
        others = [each for each in self.observers if each != node_id]
        above = tuple(rng.sample(others, min(len(others), rng.choice((0, 1, 1, 2)))))
        self.plans[node_id] = RelayPlan(rng.random() >= _DEAF_SHARE, _by_address(above))


def _by_address(ids: Sequence[NodeId]) -> tuple[NodeId, ...]:
    return tuple(ALIAS - each for each in ids)


def shortened(config: QuorumConfig, rng: random.Random) -> QuorumConfig:
    """Return relay settings for a run of seconds; sometimes chains are longer than allowed."""
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
    """A misconfigured loop, which gets no records from outside."""
    del rng
    return {each: (ids[place - 1],) for place, each in enumerate(ids)}


def _any(rng: random.Random, ids: Sequence[NodeId]) -> dict[NodeId, tuple[NodeId, ...]]:
    """Any observer below any other one."""
    above = {}
    for each in ids:
        others = [other for other in ids if other != each]
        above[each] = tuple(rng.sample(others, min(len(others), rng.randint(1, 2))))
    return above


Layout = Callable[[random.Random, Sequence[NodeId]], dict[NodeId, tuple[NodeId, ...]]]
_LAYOUTS: tuple[Layout, ...] = (_chain, _chain, _chain, _tree, _tree, _ring, _any)
