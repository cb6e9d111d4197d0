"""Small amounts of traffic for tests that are about something else."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence

from quorate.client.client import Client
from quorate.client.queries import LINEARIZABLE
from quorate.client.results import DescribeImageResponse
from quorate.demo.local_cluster import LocalNode
from quorum.v1 import commands_pb2 as wire
from tests.integration.processes import Processes

CONFIG = "log.retention.ms"
TIMEOUT_SECONDS = 60.0
WRITERS = 32


def write_configs(
    cluster: Processes,
    values: Iterable[str],
    *,
    name: str = CONFIG,
    timeout: float = TIMEOUT_SECONDS,
) -> None:
    """Set the cluster-wide default of one key to one value after the other."""

    async def write() -> None:
        async with Client(cluster.addresses, client_id="test", timeout_seconds=timeout) as client:
            for value in values:
                await client.set_config(wire.CONFIG_RESOURCE_TYPE_BROKER, "", name, value)

    asyncio.run(write())


def write_many(cluster: Processes, count: int, *, writers: int = WRITERS) -> None:
    """Fill the log: ``count`` writes of many writers, to a resource each, all of them changes."""
    salt = secrets.token_hex(32)

    async def write() -> None:
        async with Client(cluster.addresses, client_id="bulk") as client:

            async def writer(place: int) -> None:
                for value in range(place, count, writers):
                    await client.set_config(
                        wire.CONFIG_RESOURCE_TYPE_CLIENT_METRICS,
                        f"subscription-{value}",
                        "metrics",
                        f"org.example.{salt}.{value}",
                    )

            await asyncio.gather(*(writer(place) for place in range(writers)))

    asyncio.run(write())


def config_value(cluster: Processes, *, name: str = CONFIG) -> str | None:
    """The value last acknowledged by ``write_configs``, as the leader confirms it."""

    async def read() -> str | None:
        async with Client(cluster.addresses, timeout_seconds=TIMEOUT_SECONDS) as client:
            answer = await client.describe_configs(
                [(wire.CONFIG_RESOURCE_TYPE_BROKER, "")], read=LINEARIZABLE
            )
            found = {entry.name: entry.value for entry in answer.resources[0].entries}
            return found.get(name)

    return asyncio.run(read())


def image(node: LocalNode) -> DescribeImageResponse:
    """Digest and position of one node's image."""

    async def ask() -> DescribeImageResponse:
        async with Client([node.address], timeout_seconds=TIMEOUT_SECONDS) as client:
            return await client.describe_image()

    return asyncio.run(ask())


def wait_equal_images(cluster: Processes, nodes: Sequence[LocalNode]) -> None:
    """Return once all these nodes have the same image at the same offset."""

    def are_equal() -> bool:
        seen = {(answer.position.offset, answer.state_digest) for answer in map(image, nodes)}
        return len(seen) == 1

    cluster.until("equal images", are_equal)
