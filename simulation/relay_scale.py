"""Measure what observers cost their leader, with and without relays, by number of observers.

``python -m simulation.relay_scale [COUNT ...]`` prints one line per tree, with ``-o json`` all of
them as a document. Exit code 1 when an observer missed a commit, or when behind relays the leader's
messages or bytes grow by more than 5 % with the observers.

Every node is the production ``RaftNode``; disks are instant, messages take 0.3 to 1.5 ms, and
records are only counted. Messages and bytes are those the leader sends or receives, framed as on
the peer stream. Lag is the time from the leader's commit until the observer's high watermark
reaches it.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quorum.config import QuorumConfig
from quorum.core.contract.output import HighWatermarkAdvanced, Output
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.upstream import RelayPlan
from quorum.transport.framing import encode_frame
from quorum.types import (
    ElectionState,
    Endpoint,
    NodeId,
    ReplicaKey,
    Voter,
)
from simulation.harness.arrival import received
from simulation.harness.core_disk import Disk
from simulation.harness.core_node import CoreNode

VOTERS = (1, 2, 3)
TOP_RELAYS = 10
FAN_OUT = 100
BATCH_BYTES = 300
WRITES_PER_S = 4
WARM_UP_US = 3_000_000
MEASURED_US = 3_000_000
GROWTH_MAX = 0.05
"""Allowed growth of the leader's load from the fewest observers behind relays to the most."""
_FIRST_OBSERVER = 10


def tree_of(observers: int, *, with_relays: bool) -> dict[NodeId, RelayPlan]:
    """Return ten relays at the leader, and below each, if needed, relays of 100 observers each."""
    ids = range(_FIRST_OBSERVER, _FIRST_OBSERVER + observers)
    if not with_relays:
        return dict.fromkeys(ids, RelayPlan())
    top = ids[:TOP_RELAYS]
    plans = dict.fromkeys(top, RelayPlan(serves=True))
    count = -(-observers // FAN_OUT) if observers > TOP_RELAYS * FAN_OUT else 0
    middle = ids[TOP_RELAYS : TOP_RELAYS + count]
    for place, node_id in enumerate(middle):
        plans[node_id] = RelayPlan(
            serves=True, fetch_from=(top[place % len(top)], top[(place + 1) % len(top)])
        )
    above = middle or top
    for place, node_id in enumerate(ids[TOP_RELAYS + count :]):
        one, other = above[place % len(above)], above[(place + 1) % len(above)]
        plans[node_id] = RelayPlan(fetch_from=(one, other))
    return plans


@dataclass(slots=True)
class Load:
    """The cost of one tree, and the lags of its observers."""

    observers: int
    fetching_directly: int = 0
    messages: int = 0
    bytes: int = 0
    lags_ms: list[float] = field(default_factory=list)
    missing: int = 0
    """Commits missing at an observer at the end."""

    def percentile(self, percent: float) -> float:
        """Return a percentile of the lags, in ms."""
        ordered = sorted(self.lags_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


@dataclass
class Member(CoreNode):
    """A node with an instant disk."""

    tree: Tree

    @property
    def now_ms(self) -> int:
        return self.tree.now_us // 1000

    def leave(self, to: NodeId, message: Message) -> None:
        self.tree.send(self.raft, to, message)

    def take(self, output: Output) -> None:
        super().take(output)
        for progress in output.progress:
            if isinstance(progress, HighWatermarkAdvanced):
                self.tree.note_commit(self.raft, progress.high_watermark)
        if self.pending:
            self.persist()
        else:
            self.tree.arm(self.raft.me.id, output.next_deadline_ms)


class Tree:
    """One cluster on virtual time. Single use: construct, then ``measure``."""

    def __init__(self, observers: int, *, with_relays: bool) -> None:
        self._rng = random.Random(1)
        self._load = Load(observers)
        self.now_us = 1_000_000_000
        self._events: list[tuple[int, int, NodeId, NodeId, Message | None]] = []
        self._order = 0
        self._armed: dict[NodeId, int] = {}
        self._committed_us: list[tuple[int, int]] = []
        self._high_watermarks: dict[NodeId, int] = {}
        self._is_measuring = False
        voters = tuple(
            Voter(_key(each), (Endpoint("CONTROLLER", f"n{each}", 1),)) for each in VOTERS
        )
        plans = dict.fromkeys(VOTERS, RelayPlan()) | tree_of(observers, with_relays=with_relays)
        config = QuorumConfig()
        self._members = {
            node_id: Member(
                RaftNode(
                    config=config, cluster_id="scale", me=_key(node_id),
                    rng=random.Random(100_003 + node_id), bootstrap=VOTERS, relays=plan,
                ),
                Disk(ElectionState(), voters if node_id in VOTERS else ()),
                self,
            )
            for node_id, plan in plans.items()
        }  # fmt: skip

    def measure(self) -> Load:
        """Run it."""
        for node_id in VOTERS:
            self._start(node_id)
        leader = self._elect()
        for node_id in self._members:
            if node_id not in VOTERS:
                self._start(node_id)
                self._run_until(self.now_us + 1_000_000 // self._load.observers)
        self._run_until(self.now_us + WARM_UP_US)
        self._is_measuring = True
        writes = WRITES_PER_S * MEASURED_US // 1_000_000
        end_us = self.now_us + MEASURED_US
        for write in range(writes):
            member = self._members[leader]
            end = member.raft.log_end_offset + 1
            member.take(member.raft.propose(member.now_ms, end_offset=end, payload=b"x"))
            self._run_until(end_us - MEASURED_US + (write + 1) * MEASURED_US // writes)
        self._is_measuring = False
        load = self._load
        load.missing = len(self._committed_us) * load.observers - len(load.lags_ms)
        load.fetching_directly = sum(
            not view.is_voter for view in self._members[leader].raft.replicas()
        )
        return load

    def _start(self, node_id: NodeId) -> None:
        member = self._members[node_id]
        member.take(member.raft.start(member.now_ms, member.disk.durable_state()))

    def _elect(self) -> NodeId:
        while True:
            self._run_until(self.now_us + 100_000)
            for node_id in VOTERS:
                if self._members[node_id].raft.can_write:
                    return node_id

    def _run_until(self, end_us: int) -> None:
        events = self._events
        while events and events[0][0] <= end_us:
            self.now_us, _, node_id, sender, message = heapq.heappop(events)
            member = self._members[node_id]
            if message is not None:
                member.take(member.raft.receive(member.now_ms, sender, received(message)))
            elif self._armed.get(node_id) == self.now_us:
                del self._armed[node_id]
                member.take(member.raft.tick(member.now_ms))
        self.now_us = end_us

    def arm(self, node_id: NodeId, deadline_ms: int | None) -> None:
        """Wake a node at its deadline."""
        if deadline_ms is not None:
            due_us = max(deadline_ms * 1000, self.now_us + 1)
            if due_us != self._armed.get(node_id):
                self._armed[node_id] = due_us
                self._push(due_us, node_id, node_id, None)

    def note_commit(self, node: RaftNode, high_watermark: int) -> None:
        """Record that a node's high watermark reached ``high_watermark``."""
        if node.is_leader:
            if self._is_measuring:
                self._committed_us.append((high_watermark, self.now_us))
        elif node.me.id not in VOTERS:
            known = self._high_watermarks.get(node.me.id, 0)
            while (
                known < len(self._committed_us) and self._committed_us[known][0] <= high_watermark
            ):
                self._load.lags_ms.append((self.now_us - self._committed_us[known][1]) / 1000)
                known += 1
            self._high_watermarks[node.me.id] = known

    def send(self, sender: RaftNode, to: NodeId, message: Message) -> None:
        """Send a message; it arrives 0.3 to 1.5 ms later."""
        if self._is_measuring and (sender.is_leader or self._members[to].raft.is_leader):
            self._load.messages += 1
            framed = message
            if isinstance(message, FetchResponse) and message.records:
                described: Any = message.records
                self._load.bytes += len(described.payload) * BATCH_BYTES
                framed = replace(message, records=b"")
            self._load.bytes += len(encode_frame(framed))
        delay_us = self._rng.randint(300, 1500)
        self._push(self.now_us + delay_us, to, sender.me.id, message)

    def _push(self, at_us: int, to: NodeId, sender: NodeId, message: Message | None) -> None:
        self._order += 1
        heapq.heappush(self._events, (at_us, self._order, to, sender, message))


def _key(node_id: NodeId) -> ReplicaKey:
    return ReplicaKey(node_id, node_id.to_bytes(16, "big"))


def row_of(load: Load, *, with_relays: bool, took_s: float) -> dict[str, object]:
    """Return one row of the table: rates at the leader, lags of the observers."""
    seconds = MEASURED_US / 1_000_000
    return {
        "observers": load.observers,
        "relays": "yes" if with_relays else "no",
        "direct": load.fetching_directly,
        "messages_per_s": round(load.messages / seconds),
        "kib_per_s": round(load.bytes / seconds / 1024, 1),
        "p50_ms": round(load.percentile(50), 1),
        "p99_ms": round(load.percentile(99), 1),
        "max_ms": round(load.percentile(100), 1),
        "missing": load.missing,
        "took_s": round(took_s, 1),
    }


def problems(direct: Sequence[Load], behind_relays: Sequence[Load]) -> list[str]:
    """Return one sentence for each tree that lost commits or whose leader's load grew too much.

    Growth is compared with the tree of fewest observers that has every relay at the leader: with
    fewer observers, the observers themselves are most of the leader's load.
    """
    found = [
        f"{load.observers} observers, {load.fetching_directly} of them at the leader: "
        f"{load.missing} commits are missing"
        for load in (*direct, *behind_relays)
        if load.missing
    ]
    trees = sorted(
        (load for load in behind_relays if load.observers >= TOP_RELAYS),
        key=lambda load: load.observers,
    )
    for load in trees[1:]:
        for name in ("messages", "bytes"):
            least, most = getattr(trees[0], name), getattr(load, name)
            if most > least * (1 + GROWTH_MAX):
                found.append(
                    f"the leader's {name} grew from {least} with {trees[0].observers} observers "
                    f"to {most} with {load.observers}, by more than {GROWTH_MAX:.0%}"
                )
    return found


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if there are ``problems``, which are printed to stderr."""
    parser = argparse.ArgumentParser(prog="simulation.relay_scale", description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, metavar="COUNT")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    behind_relays: list[Load] = []
    direct: list[Load] = []
    for with_relays in (False, True):
        for count in options.counts or [100, 1_000, 10_000]:
            if not with_relays and count > TOP_RELAYS * FAN_OUT:
                continue
            began = time.perf_counter()
            load = Tree(count, with_relays=with_relays).measure()
            (behind_relays if with_relays else direct).append(load)
            row = row_of(load, with_relays=with_relays, took_s=time.perf_counter() - began)
            if options.output == "table":
                if not rows:
                    sys.stdout.write(" ".join(f"{name:>14}" for name in row) + "\n")
                sys.stdout.write(" ".join(f"{value!s:>14}" for value in row.values()) + "\n")
                sys.stdout.flush()
            rows.append(row)
    if options.output == "json":
        sys.stdout.write(json.dumps({"rows": rows}, indent=1) + "\n")
    found = problems(direct, behind_relays)
    for sentence in found:
        sys.stderr.write(f"{sentence}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
