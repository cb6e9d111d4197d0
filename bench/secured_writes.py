"""``python -m bench.secured_writes``: what mode bound costs a node, in processor time per write.

Two nodes run side by side, both with TLS and certificates: one in mode tls, which lets every caller
do everything, one in mode bound with ACLs, of which one prefix lets the measured client write. The
same client program writes to one and then to the other, by turns. Counted is the processor time of
the node's process, from the connection to the answer. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from bench.build_form import print_form
from quorate.client import TOPIC, Client
from quorate.demo.local_cluster import LocalCluster, LocalNode
from quorate.demo.security import OPERATOR, ClusterSecurity
from quorate.demo.workload import Workload
from quorum.v1 import commands_pb2 as wire

APP = "app.example"
TOPICS = 50
CLUSTER_ID = "quorate-local"
WRITERS = 32
_ACLS_PER_COMMAND = 500


def credentials(security: ClusterSecurity, name: str) -> grpc.ChannelCredentials:
    """Return what a caller with a certificate shows."""
    files = (security.authorities, security.certs / f"{name}.key", security.certs / f"{name}.pem")
    return grpc.ssl_channel_credentials(*(each.read_bytes() for each in files))


@contextmanager
def started(folder: Path, mode: str) -> Iterator[tuple[LocalCluster, ClusterSecurity]]:
    """Run one node in this mode, whose client has a certificate."""
    security = ClusterSecurity(folder / "security")
    settings = {"limits.disk_free_bytes_min": 0}
    cluster = LocalCluster(folder, voters=1, settings=settings, security=security)
    (node,) = cluster.nodes.values()
    if mode == "tls":
        node.settings["security.mode"] = mode
        del node.settings["listeners.sasl"]
    security.make(cluster.command)
    cluster.command("certs", "issue", "--dir", str(security.certs), "client", APP)
    try:
        cluster.format(node)
        cluster.start(node)
        cluster.wait_ready([node])
        yield cluster, security
    finally:
        cluster.stop_all()


def entry(principal: str, name: str) -> wire.AclEntry:
    """Return an ACL that lets a principal alter configurations of topics with this prefix."""
    return wire.AclEntry(
        resource_type=wire.ACL_RESOURCE_TYPE_TOPIC,
        resource_name=name,
        pattern_type=wire.ACL_PATTERN_TYPE_PREFIXED,
        principal=principal,
        host="*",
        operation=wire.ACL_OPERATION_ALTER_CONFIGS,
        permission_type=wire.ACL_PERMISSION_TYPE_ALLOW,
    )


async def prepare(node: LocalNode, security: ClusterSecurity, acls: int) -> None:
    """Write ACLs and topics."""
    entries = [entry(f"User:app-{number}.example", f"own-{number}-") for number in range(acls - 1)]
    entries.append(entry(f"User:{APP}", "topic-"))
    async with Client([node.address], credentials=credentials(security, OPERATOR)) as client:
        for start in range(0, acls, _ACLS_PER_COMMAND):
            await client.create_acls(entries[start : start + _ACLS_PER_COMMAND])
        await Workload(client, CLUSTER_ID, seed=1, brokers=1).start_brokers()
        for number in range(TOPICS):
            await client.create_topic(f"topic-{number}", partitions=1, replication_factor=1)


def processor_ns(tasks: Path) -> int:
    """Return the processor time of a process; clock ticks would be too coarse."""
    return sum(int(each.read_text().split()[0]) for each in tasks.glob("*/schedstat"))


async def write(node: LocalNode, security: ClusterSecurity, count: int) -> float:
    """Return the microseconds of the node's processor time per write."""
    assert node.process is not None
    tasks = Path(f"/proc/{node.process.pid}/task")
    async with Client([node.address], credentials=credentials(security, APP)) as client:
        await client.set_config(TOPIC, "topic-0", "retention.ms", "1")
        numbers = iter(range(count))
        before = processor_ns(tasks)

        async def writer() -> None:
            for number in numbers:
                topic = f"topic-{number % TOPICS}"
                await client.set_config(TOPIC, topic, "retention.ms", str(number + 2))

        await asyncio.gather(*(writer() for _ in range(WRITERS)))
    return (processor_ns(tasks) - before) / count / 1e3


def main() -> int:
    """Alternate, so that other work on the machine affects both alike."""
    parser = argparse.ArgumentParser(prog="bench.secured_writes", description=__doc__)
    parser.add_argument("--acls", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--writes", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    options = parser.parse_args()
    print_form()
    found: dict[str, list[float]] = {"tls": [], "bound": []}
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as home,
        started(Path(home) / "tls", "tls") as plain,
        started(Path(home) / "bound", "bound") as bound,
    ):
        nodes = {"tls": plain, "bound": bound}
        for cluster, security in nodes.values():
            asyncio.run(prepare(cluster.nodes[1], security, options.acls))
        for number in range(options.rounds):
            # Each mode comes first as often as last.
            turns = list(nodes.items())[:: 1 if number % 2 else -1]
            for mode, (cluster, security) in turns:
                found[mode].append(asyncio.run(write(cluster.nodes[1], security, options.writes)))
    percents = [(bound / plain - 1) * 100 for plain, bound in zip(*found.values(), strict=True)]
    row = {
        "acls": options.acls,
        "writes": options.writes * options.rounds,
        **{f"microseconds_{mode}": round(min(all_), 1) for mode, all_ in found.items()},
        **{f"median_{mode}": round(statistics.median(all_), 1) for mode, all_ in found.items()},
        "percent_more_median_of_rounds": round(statistics.median(percents), 2),
        "percent_more_standard_error": round(
            statistics.stdev(percents) / len(percents) ** 0.5 * 1.25, 2
        ),
    }
    json.dump(row, sys.stdout)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
