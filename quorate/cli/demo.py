"""``quorate demo``: a quorum's whole job on this machine, live."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session

if TYPE_CHECKING:
    from quorate.demo.local_cluster import LocalCluster

RETRY_SECONDS = 0.05


@click.command("demo", cls=LocalCommand)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-data"),
    show_default=True,
    help="Where the nodes' data goes. It is emptied first.",
)
@click.option(
    "--input",
    "source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A real Kafka controller's metadata directory to import as well.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Secure it: certificates, mode bound, a user with a password, ACLs (extra certs).",
)
@click.option("--keep", is_flag=True, help="Leave the cluster running at the end.")
@click.option(
    "--seed", type=WholeNumber(), default=1, show_default=True, help="Of the written metadata."
)
@click.option(
    "--brokers",
    type=WholeNumber(min=3),
    default=30,
    show_default=True,
    help="How many brokers register.",
)
@click.option(
    "--topics",
    type=WholeNumber(min=1),
    default=300,
    show_default=True,
    help="How many topics they hold.",
)
@click.option(
    "--partitions",
    type=WholeNumber(min=1),
    default=10,
    show_default=True,
    help="Of each topic, with three replicas each.",
)
@pass_session
def demo(
    session: Session,
    folder: Path,
    source: Path | None,
    secure: bool,
    keep: bool,
    seed: int,
    brokers: int,
    topics: int,
    partitions: int,
) -> None:
    """Run three voters and observers here and show the whole job, step by step.

    Format, election, writes over gRPC, checkpoints, FetchSnapshot, fail-over, a query, a
    metrics scrape, the export and the audit questions. A failure names its step and exits 1.
    """
    from quorate.demo.local_cluster import LocalCluster
    from quorate.demo.place import PlaceTakenError, take
    from quorate.demo.security import ClusterSecurity
    from quorate.demo.stage import Stage, StepFailedError
    from quorate.demo.story import SECURED_STEPS, SETTINGS, STEPS, Scale, Story

    try:
        take(folder)
    except PlaceTakenError as error:
        raise CliError(str(error), hint=error.hint) from error
    console = Console(no_color=session.is_colourless)
    security = ClusterSecurity(folder.resolve() / "security") if secure else None
    cluster = LocalCluster(
        folder.resolve(), settings=SETTINGS, cluster_id="quorate-demo", security=security
    )
    scale = Scale(brokers=brokers, topics=topics, partitions=partitions, seed=seed)
    story = Story(cluster, Stage(console, SECURED_STEPS if secure else STEPS), scale, source=source)
    is_kept = False

    # A stopped demo stops its nodes, and so does one whose terminal was closed (not under nohup).
    def interrupt(number: int, _: FrameType | None) -> None:
        if cluster.is_starting:
            # Its process is not known yet, and would be left behind.
            threading.Timer(RETRY_SECONDS, os.kill, (os.getpid(), number)).start()
            return
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)
    try:
        asyncio.run(story.run())
        is_kept = keep
    except StepFailedError as error:
        raise CliError(str(error), hint=f"the nodes' logs are below {folder}") from error
    finally:
        if not is_kept:
            # The nodes have sessions of their own: a second signal would leave them behind.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            cluster.stop_all()
    console.print("\n[bold green]The whole job was done.[/]")
    if is_kept:
        _print_usage(console, cluster)


def _print_usage(console: Console, cluster: LocalCluster) -> None:
    servers = ",".join(cluster.addresses)
    pids = [node.process.pid for node in cluster.nodes.values() if node.process is not None]
    console.print("The cluster is still running. Talk to it with, for example:")
    if cluster.security is not None:
        for name, value in cluster.security.operator_environment.items():
            console.print(f"  export {name}={shlex.quote(value)}", soft_wrap=True, highlight=False)
    for command in ("quorum describe replication", "topic list", "broker list"):
        console.print(f"  quorate --bootstrap {servers} {command}", soft_wrap=True)
    console.print(f"Stop it with: kill {' '.join(map(str, pids))}", soft_wrap=True)
