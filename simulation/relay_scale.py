"""What observers cost their leader, with and without relays, by number of observers.

``python -m simulation.relay_scale [COUNT ...]`` prints one line per tree, with ``-o json`` all of
them as a document. Exit code 1 when an observer missed a commit, or when behind relays the
leader's messages or bytes grow by more than 5 % with the observers.

Every node is the production ``RaftNode``; disks are instant, messages take 0.3 to 1.5 ms, and
records are only counted. Messages and bytes are those the leader sends or receives, framed as on
the peer stream; lag is the time from the leader's commit to the observer's knowing of it.
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

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import DurableState
from quorum.core.contract.output import Append, HighWatermarkAdvanced, Output
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.upstream import RelayPlan
from quorum.transport.framing import encode_frame
from quorum.types import (
    LOG_BEGINNING,
    ElectionState,
    Endpoint,
    EpochStart,
    NodeId,
    ReplicaKey,
    Voter,
)

VOTERS = (1, 2, 3)
TOP_RELAYS = 10
FAN_OUT = 100
BATCH_BYTES = 300
WRITES_PER_S = 4
WARM_UP_US = 3_000_000
MEASURED_US = 3_000_000
GROWTH_MAX = 0.05
"""By this share the leader's load may grow from the fewest observers behind relays to the most."""
_FIRST_OBSERVER = 10


def tree_of(observers: int, *, with_relays: bool) -> dict[NodeId, RelayPlan]:
    """Ten relays at the leader; below each, where needed, relays with a hundred observers each."""
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
    """What one tree cost and how far its observers were behind."""

    observers: int
    fetching_directly: int = 0
    messages: int = 0
    bytes: int = 0
    lags_ms: list[float] = field(default_factory=list)
    missing: int = 0
    """Commits that an observer had not heard of at the end."""

    def percentile(self, percent: float) -> float:
        """Of the lags, in ms."""
        ordered = sorted(self.lags_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class Tree:
    """One cluster on virtual time. Single use: construct, then ``measure``."""

    def __init__(self, observers: int, *, with_relays: bool, seed: int = 1) -> None:
        self._rng = random.Random(seed)
        self._load = Load(observers)
        self._now_us = 1_000_000_000
        self._events: list[tuple[int, int, NodeId, NodeId, Message | None]] = []
        self._order = 0
        self._armed: dict[NodeId, int] = {}
        self._batches: dict[int, Append] = {}
        self._committed_us: list[tuple[int, int]] = []
        self._heard: dict[NodeId, int] = {}
        self._is_measuring = False
        self._voters = tuple(
            Voter(_key(each), (Endpoint("CONTROLLER", f"n{each}", 1),)) for each in VOTERS
        )
        plans = dict.fromkeys(VOTERS, RelayPlan()) | tree_of(observers, with_relays=with_relays)
        config = QuorumConfig()
        self._nodes = {
            node_id: RaftNode(
                config=config, cluster_id="scale", me=_key(node_id),
                rng=random.Random(seed * 100_003 + node_id), bootstrap=VOTERS, relays=plan,
            )
            for node_id, plan in plans.items()
        }  # fmt: skip

    def measure(self) -> Load:
        """Run it."""
        for node_id in VOTERS:
            self._start(node_id, (VotersAt(-1, self._voters),))
        leader = self._elect()
        for node_id in self._nodes:
            if node_id not in VOTERS:
                self._start(node_id, ())
                self._run_until(self._now_us + 1_000_000 // self._load.observers)
        self._run_until(self._now_us + WARM_UP_US)
        self._is_measuring = True
        writes = WRITES_PER_S * MEASURED_US // 1_000_000
        end_us = self._now_us + MEASURED_US
        for write in range(writes):
            node = self._nodes[leader]
            end = node.log_end_offset + 1
            self._take(leader, node.propose(self._now_us // 1000, end_offset=end, payload=b"x"))
            self._run_until(end_us - MEASURED_US + (write + 1) * MEASURED_US // writes)
        self._is_measuring = False
        load = self._load
        load.missing = len(self._committed_us) * load.observers - len(load.lags_ms)
        load.fetching_directly = sum(not view.is_voter for view in self._nodes[leader].replicas())
        return load

    def _start(self, node_id: NodeId, voters: tuple[VotersAt, ...]) -> None:
        state = DurableState(
            ElectionState(), LOG_BEGINNING, LOG_BEGINNING, (), (), voters
        )  # fmt: skip
        self._take(node_id, self._nodes[node_id].start(self._now_us // 1000, state))

    def _elect(self) -> NodeId:
        while True:
            self._run_until(self._now_us + 100_000)
            for node_id in VOTERS:
                if self._nodes[node_id].can_write:
                    return node_id

    def _run_until(self, end_us: int) -> None:
        events = self._events
        while events and events[0][0] <= end_us:
            self._now_us, _, node_id, sender, message = heapq.heappop(events)
            node, now_ms = self._nodes[node_id], self._now_us // 1000
            if message is not None:
                self._take(node_id, node.receive(now_ms, sender, message))
            elif self._armed.get(node_id) == self._now_us:
                del self._armed[node_id]
                self._take(node_id, node.tick(now_ms))
        self._now_us = end_us

    def _take(self, node_id: NodeId, output: Output) -> None:
        """Carry out an output; the disk is done at once."""
        node = self._nodes[node_id]
        while True:
            for effect in output.persist:
                if isinstance(effect, Append) and node.is_leader:
                    self._batches[effect.base_offset] = effect
            for promise in output.after_persist:
                self._send(node_id, promise.to, promise.message)
            for send in output.immediate:
                self._send(node_id, send.to, send.message)
            for progress in output.progress:
                if isinstance(progress, HighWatermarkAdvanced):
                    self._note_commit(node_id, node, progress.high_watermark)
            if not output.ticket:
                break
            output = node.persisted(self._now_us // 1000, output.ticket)
        deadline_ms = output.next_deadline_ms
        if deadline_ms is not None:
            due_us = max(deadline_ms * 1000, self._now_us + 1)
            if due_us != self._armed.get(node_id):
                self._armed[node_id] = due_us
                self._push(due_us, node_id, node_id, None)

    def _note_commit(self, node_id: NodeId, node: RaftNode, high_watermark: int) -> None:
        if node.is_leader:
            if self._is_measuring:
                self._committed_us.append((high_watermark, self._now_us))
        elif node_id not in VOTERS:
            known = self._heard.get(node_id, 0)
            while (
                known < len(self._committed_us) and self._committed_us[known][0] <= high_watermark
            ):
                self._load.lags_ms.append((self._now_us - self._committed_us[known][1]) / 1000)
                known += 1
            self._heard[node_id] = known

    def _send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        extra_bytes = 0
        if isinstance(message, FetchResponse) and message.serve_bytes_max > 0:
            message, extra_bytes = self._filled(message)
        if self._is_measuring and (self._nodes[sender].is_leader or self._nodes[to].is_leader):
            self._load.messages += 1
            self._load.bytes += len(encode_frame(message)) + extra_bytes
        delay_us = self._rng.randint(300, 1500)
        self._push(self._now_us + delay_us, to, sender, message)

    def _filled(self, message: FetchResponse) -> tuple[FetchResponse, int]:
        """The records it asks for, as the receiving runtime would describe them."""
        offset, count = message.serve_offset, 0
        epochs: list[EpochStart] = []
        voters: list[VotersAt] = []
        while offset < message.serve_end_offset:
            batch = self._batches[offset]
            if not epochs or epochs[-1].epoch != batch.epoch:
                epochs.append(EpochStart(batch.epoch, offset))
            if len(batch.controls) > 1:
                voters.append(VotersAt(batch.end_offset - 1, self._voters))
            offset = batch.end_offset
            count += 1
        received = ReceivedRecords(
            message.serve_offset, offset, tuple(epochs), tuple(voters), b"x"
        )  # fmt: skip
        return replace(message, received=received, serve_bytes_max=0), count * BATCH_BYTES

    def _push(self, at_us: int, to: NodeId, sender: NodeId, message: Message | None) -> None:
        self._order += 1
        heapq.heappush(self._events, (at_us, self._order, to, sender, message))


def _key(node_id: NodeId) -> ReplicaKey:
    return ReplicaKey(node_id, node_id.to_bytes(16, "big"))


def row_of(load: Load, *, with_relays: bool, took_s: float) -> dict[str, object]:
    """One row of the table: rates at the leader, lags of the observers."""
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
    """One sentence for each tree that lost commits, and each that cost its leader more with relays.

    Growth is evaluated against the tree with the fewest observers that has every relay at the
    leader: fewer observers than that are themselves what the leader's load is made of.
    """
    found = [
        f"{load.observers} observers, {load.fetching_directly} of them at the leader: "
        f"{load.missing} commits were not heard of"
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
    """Print the table; 1 if there are ``problems``, which standard error then names."""
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
