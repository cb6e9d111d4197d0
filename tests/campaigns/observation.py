"""The state of a quorum that a campaign of calls compares, node by node.

The comparison is a pure function of two observations, so that ``test_mutated_calls.py`` can show
each of its findings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, fields

from quorate.client.client import Client
from quorate.demo.local_cluster import LocalNode
from quorum.log.layout import QUORUM_STATE_NAME, partition_directory
from tests.integration.processes import Processes

ASK_SECONDS = 30.0
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node. No mutated call may change any of these fields."""

    process_id: int
    epoch: int
    leader_id: int
    voters: tuple[tuple[int, str, tuple[tuple[str, str, int], ...]], ...]
    """Node id, directory id and endpoints of each voter."""
    election_state: str
    """Content of the file ``quorum-state``: epoch, leader and vote on disk."""
    tracebacks: int
    is_ready: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """All nodes, and the digests of their images."""

    nodes: Mapping[int, NodeState]
    digests: Mapping[int, tuple[int, str]]
    """Offset and image digest of each node."""


def differences(before: Observation, after: Observation, *, same_image: bool) -> list[str]:
    """Return the differences; [] when there are none.

    Args:
        before: The observation before any call.
        after: The observation when every call was answered and every node had applied the log.
        same_image: Whether the digest must be equal as well; not where the calls may write.
    """
    found = []
    for number, was in before.nodes.items():
        now = after.nodes.get(number)
        if now is None:
            found.append(f"node {number} is gone")
            continue
        for each in fields(NodeState):
            old, new = getattr(was, each.name), getattr(now, each.name)
            if old != new:
                name = each.name.replace("_", " ")
                found.append(f"node {number}: {name} was {old!r}, is {new!r}")
    if len(set(after.digests.values())) > 1:
        found.append(f"the nodes' images differ: {dict(after.digests)}")
    if same_image and _digests(before) != _digests(after):
        found.append(f"the image was {_digests(before)}, is {_digests(after)}")
    return found


def _digests(seen: Observation) -> set[str]:
    return {digest for _, digest in seen.digests.values()}


async def observe(cluster: Processes) -> Observation:
    """Observe every node, once all have applied the same log.

    Raises:
        ClusterError: A process ended, or the nodes do not reach the same offset.
    """
    nodes, digests = {}, {}
    for node in cluster.voters:
        async with Client([node.address], timeout_seconds=ASK_SECONDS) as client:
            quorum = await client.describe_quorum()
            image = await client.describe_image()
        digests[node.id] = (image.position.offset, image.state_digest.hex())
        assert node.process is not None
        voters = sorted(
            (each.replica_id, each.directory_id.hex(), endpoints(quorum, each.replica_id))
            for each in quorum.voters
        )
        nodes[node.id] = NodeState(
            process_id=node.process.pid if node.is_running else 0,
            epoch=quorum.leader_epoch,
            leader_id=quorum.leader_id,
            voters=tuple(voters),
            election_state=election_state(node),
            tracebacks=node.log_path.read_text(errors="replace").count(TRACEBACK),
            is_ready=await asyncio.to_thread(cluster.is_ready, node),
        )
    return Observation(nodes, digests)


def endpoints(quorum: object, node_id: int) -> tuple[tuple[str, str, int], ...]:
    """Return the address under which the answering node knows another one."""
    return tuple(
        (place.name, place.host, place.port)
        for each in quorum.nodes  # type: ignore[attr-defined]  # a message of protobuf
        if each.node_id == node_id
        for place in each.endpoints
    )


def election_state(node: LocalNode) -> str:
    """The file that holds epoch and vote."""
    return (partition_directory(node.data_dir) / QUORUM_STATE_NAME).read_text()
