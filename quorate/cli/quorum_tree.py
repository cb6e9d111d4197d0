"""The tree of relays as rows: every observer that is known of, and its way to the leader."""

from __future__ import annotations

from quorate.client.results.admin import DescribeQuorumResponse
from quorum.config import RELAY_HOPS_MAX

_UNKNOWN = -1


def sources_of(answer: DescribeQuorumResponse) -> dict[int, int]:
    """Whom each observer fetches from, by its number; those of the answering node included."""
    top = answer.leader_id if answer.is_leader else answer.node_id
    found: dict[int, int] = {}
    for replica in answer.observers:
        for link in replica.below:
            found[link.observer_id] = link.fetches_from
    for replica in answer.observers:
        found[replica.replica_id] = top
    return found


def route_of(observer: int, sources: dict[int, int], top: int) -> list[int]:
    """The relays between an observer and ``top``, nearest first; empty without any.

    Reports of different moments may contradict each other, so it ends where every way does.
    """
    route: list[int] = []
    while (source := sources.get(observer, top)) != top and len(route) < RELAY_HOPS_MAX:
        route.append(source)
        observer = source
    return route


def with_routes(
    rows: list[dict[str, object]], answer: DescribeQuorumResponse
) -> list[dict[str, object]]:
    """These rows with each one's way, and rows for the observers that are behind relays."""
    top = answer.leader_id if answer.is_leader else answer.node_id
    sources = sources_of(answer)
    beyond = [] if answer.is_leader else [answer.node_id, *answer.relay_path]
    known = {row["node_id"] for row in rows}
    for row in rows:
        row["route"] = beyond if row["status"] == "Observer" else []
    return rows + [
        {
            **dict.fromkeys(rows[0], _UNKNOWN),
            "node_id": observer,
            "directory_id": None,
            "last_fetch": None,
            "last_caught_up": None,
            "status": "Observer",
            "is_disqualified": False,
            "fetches_from": sources[observer],
            "route": route_of(observer, sources, top) + beyond,
            "subtree": sum(source == observer for source in sources.values()),
            "is_low_provisional": False,
        }
        for observer in sorted(sources.keys() - known)
    ]
