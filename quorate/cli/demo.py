"""``quorate demo``: a quorum's whole job on this machine, live."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path

import click
from rich.console import Console

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.exits import CliError
from quorate.cli.session import Session


@click.command("demo", cls=SessionCommand)
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
@click.option("--keep", is_flag=True, help="Leave the cluster running at the end.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the written metadata.")
@pass_session
def demo(session: Session, folder: Path, source: Path | None, keep: bool, seed: int) -> None:
    """Run three voters and observers here and show the whole job, step by step.

    Format, election, writes over gRPC, checkpoints, FetchSnapshot, fail-over, a query, a
    metrics scrape, the export and the audit questions. A failure names its step and exits 1.
    """
    from quorate.demo.local_cluster import LocalCluster
    from quorate.demo.stage import Stage, StepFailedError
    from quorate.demo.story import SETTINGS, STEPS, Scale, Story

    marker = folder / ".quorate-demo"
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise CliError(f"{folder} is not empty and not of a demo", hint="name another --folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    marker.touch()
    console = Console(no_color=session.is_colourless)
    cluster = LocalCluster(folder.resolve(), settings=SETTINGS, cluster_id="quorate-demo")
    story = Story(cluster, Stage(console, STEPS), Scale(seed=seed), source=source)
    is_kept = False
    # A stopped demo stops its nodes: SIGTERM takes the way of an interruption.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(story.tell())
        is_kept = keep
    except StepFailedError as error:
        raise CliError(str(error), hint=f"the nodes' logs are below {folder}") from error
    finally:
        if not is_kept:
            cluster.stop_all()
    console.print("\n[bold green]The whole job was done.[/]")
    if is_kept:
        _say_how_to_talk(console, cluster.addresses, [n.process.pid for n in cluster.nodes.values()
                                                      if n.process is not None])  # fmt: skip


def _say_how_to_talk(console: Console, addresses: list[str], pids: list[int]) -> None:
    servers = ",".join(addresses)
    console.print("The cluster is still running. Talk to it with, for example:")
    for command in ("quorum describe replication", "topic list", "broker list"):
        console.print(f"  quorate --bootstrap {servers} {command}", soft_wrap=True)
    console.print(f"Stop it with: kill {' '.join(map(str, pids))}", soft_wrap=True)
