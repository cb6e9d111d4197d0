"""A relay; the test plays its leader, or the relay that it fetches from."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from quorum.config import QuorumConfig
from quorum.core.contract.output import Output
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.state.upstream import RelayPlan
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CLUSTER
from tests.support.core_disk import disk_with, key, voter
from tests.support.wire_node import WireNode

CONFIG = QuorumConfig(held_fetches_max=2, observers_max=3, relay_hops_max=2)
WAIT_MS = CONFIG.fetch_max_wait_ms


class RelayNode:
    """Relay 7, to which leader 1 has reported that offsets below ``committed`` are committed."""

    def __init__(
        self,
        committed: int = 3,
        *,
        path: tuple[ReplicaKey, ...] = (),
        config: QuorumConfig = CONFIG,
        disk: Disk | None = None,
        voters: tuple[NodeId, ...] = (1, 2),
        now_ms: int = 1_000,
        has_contact: bool = True,
    ) -> None:
        self.node = WireNode(
            config=config, cluster_id=CLUSTER, me=key(7), rng=random.Random(1),
            relays=RelayPlan(serves=True, fetch_from=tuple(each.id for each in path)),
        )  # fmt: skip
        self.now_ms = now_ms
        disk = disk or disk_with("1:a 1:b 1:c 1:d", epoch=1, leader=1)
        disk = replace(disk, first_voters=tuple(map(voter, voters)))
        self.output = self._noted(self.node.start(self.now_ms, disk.durable_state()))
        self.upstream, self.path = path[0].id if path else 1, path
        if has_contact:
            self.fetch_answered(committed)

    def fetch_answered(
        self, committed: int, *, age_ms: int = -1
    ) -> list[tuple[int, FetchResponse]]:
        """Deliver the leader's response, directly or through relays; return the responses sent.

        ``age_ms``: the time since a majority was last certain to follow the leader.
        """
        answer = FetchResponse(
            self.fetch.request_id, ErrorCode.NONE, 1, 1, committed, path=self.path,
            contact_age_ms=0, leader_age_ms=age_ms,
        )  # fmt: skip
        self.output = self._noted(self.node.receive(self.now_ms, self.upstream, answer))
        assert self.node.high_watermark == committed
        return answers(self.output)

    def ask(self, number: int = 1, **fields: Any) -> list[tuple[int, FetchResponse]]:
        """Return an observer's Fetch, by default node 8's at the high watermark that it knows."""
        asked = FetchRequest(
            number, CLUSTER, key(8), 1, 3, 1, high_watermark=3, max_wait_ms=WAIT_MS
        )
        asked = replace(asked, **fields)
        return answers(self._noted(self.node.receive(self.now_ms, asked.replica.id, asked)))

    def after(self, ms: int) -> list[tuple[int, FetchResponse]]:
        self.now_ms += ms
        return answers(self._noted(self.node.tick(self.now_ms)))

    def _noted(self, output: Output) -> Output:
        """Return the response to ``fetch``, the newest Fetch of this relay."""
        for each in (*output.immediate, *output.after_persist):
            if isinstance(each.message, FetchRequest):
                self.fetch = each.message
        return output


def answers(output: Output) -> list[tuple[int, FetchResponse]]:
    sends = [*output.immediate, *output.after_persist]
    return [
        (each.message.request_id, each.message)
        for each in sends
        if isinstance(each.message, FetchResponse)
    ]
