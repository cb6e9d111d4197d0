"""Steps of the leader's wall clock, large and small, forward and back, while clients write."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc

from quorate.client.client import Client
from quorum.v1 import commands_pb2 as wire
from quorum.v1 import metadata_pb2
from tests.campaigns.environment import Seen, still_whole
from tests.campaigns.stepped_node import VARIABLE
from tests.integration.processes import Processes
from tests.integration.traffic import CONFIG

_DAY_MS = 86_400_000
STEPS_MS = (1_000, -1_000, _DAY_MS, -_DAY_MS, 3_650 * _DAY_MS, -20_000 * _DAY_MS, 60_000, 0)
"""Steps in milliseconds, each relative to the true time; -20,000 days are before 1970."""
WRITES_EACH = 10
NEAR_MS = 30_000
SETTINGS: dict[str, object] = {"quorum.fetch_timeout_ms": 8_000}


def clock_steps(folder: Path) -> Seen:
    """No election, no lost write, no time stamp that falls, also after a change of leader."""
    seen = Seen()
    cluster = Processes(folder, settings=SETTINGS)
    cluster.program = "tests.campaigns.stepped_node"
    file = folder / "clock"
    try:
        cluster.format_all()
        for node in cluster.voters:
            # Each node has a file of its own, so the clocks of the other nodes stay right.
            cluster.environment[VARIABLE] = str(node.folder / "clock")
            cluster.start(node)
        cluster.wait_ready(cluster.voters)
        leader = cluster.leader()
        file = leader.folder / "clock"
        epoch = cluster.metric(leader, "quorate_raft_epoch")
        true_ms = asyncio.run(_described_ms(leader.address))
        effects = []
        for number, step in enumerate(STEPS_MS):
            file.write_text(str(step))
            now_ms = asyncio.run(_described_ms(leader.address))
            effects.append(abs(now_ms - true_ms - step) < NEAR_MS * (number + 1))
            asyncio.run(_write(cluster, number))
            seen.expect(
                cluster.metric(leader, "quorate_raft_epoch") == epoch,
                f"an election at a step of {step} ms",
            )
        stamps = _stamps(leader.address)
        seen.expect(stamps == sorted(stamps), "a time stamp fell")
        seen.effect = f"{sum(effects)} of {len(STEPS_MS)} steps seen in its answers"
        seen.expect(all(effects), "a step did not take place")
        seen.expect(max(stamps) - true_ms > 3_000 * _DAY_MS, "no time stamp was from the future")
        cluster.kill(leader)
        asyncio.run(_write(cluster, len(STEPS_MS)))
        stamps = _stamps(cluster.leader().address)
        seen.expect(stamps == sorted(stamps), "a time stamp fell after a change of leader")
        seen.answer = "leads on; stamps never fall, also of the next leader"
        still_whole(cluster, seen)
    finally:
        cluster.end_all()
    return seen


async def _described_ms(address: str) -> int:
    async with Client([address], timeout_seconds=60.0) as client:
        return (await client.describe_quorum()).timestamp_ms


async def _write(cluster: Processes, number: int) -> None:
    async with Client(cluster.addresses, client_id="honest", timeout_seconds=60.0) as client:
        for each in range(WRITES_EACH):
            value = str(1_000 * (number + 1) + each)
            await client.set_config(wire.CONFIG_RESOURCE_TYPE_BROKER, "", CONFIG, value)


def _stamps(address: str) -> list[int]:
    """Return the time stamps of all data batches, in the order of the log."""
    found: list[int] = []
    request = metadata_pb2.WatchRequest(from_offset=0, client_id="campaign")
    with grpc.insecure_channel(address) as channel:
        watch = channel.unary_stream(
            "/quorum.v1.MetadataService/Watch",
            metadata_pb2.WatchRequest.SerializeToString,
            metadata_pb2.WatchResponse.FromString,
        )
        call = watch(request, timeout=60)
        for event in call:
            found += [each.timestamp_ms for each in event.changes.batches if not each.is_control]
            if event.HasField("progress") or len(found) > WRITES_EACH * len(STEPS_MS):
                break
        call.cancel()
    return found
