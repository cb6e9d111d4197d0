"""``quorate top``: the quorum, live."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.each_node import ask_all
from quorate.cli.exits import CliError, Exit
from quorate.cli.health import HealthReport, evaluate, require_leader
from quorate.cli.output import Result, write_lines
from quorate.cli.ranges import Seconds, WholeNumber
from quorate.cli.session import Session

_COLUMNS = ("node_id", "role", "log_end_offset", "lag", "last_fetch", "address", "problem")


@dataclass(frozen=True, slots=True)
class Sample:
    """What all nodes said at one moment, in monotonic seconds."""

    at_s: float
    report: HealthReport


@click.command(cls=SessionCommand)
@click.option(
    "--interval",
    "interval_s",
    type=Seconds(min=0.2),
    default=1.0,
    show_default=True,
    help="Pause between two looks.",
)
@click.option("--count", type=WholeNumber(min=1), help="End after so many looks.")
@pass_session
def top(session: Session, interval_s: float, count: int | None) -> None:
    """Show the quorum live: leader, positions, rates, lag and problems of every node.

    Asks the nodes of --bootstrap and all others that these know. Without a terminal, and with -o
    jsonl, each look is written below the last one. Interrupt to end. With --count the exit code is
    7 if the last look found no leader, or nobody answered.
    """
    if session.output in ("json", "yaml"):
        raise CliError("top has no end, so no document; use -o jsonl", code=Exit.USAGE)
    servers = session.servers()
    if session.output == "jsonl" or not sys.stdout.isatty():
        last = asyncio.run(_look(session, servers, interval_s, count, _written(session)))
        require_leader(last.report)
        return
    # Loaded for a live view only.
    from rich.live import Live

    from quorate.cli.top_view import screen

    with Live(auto_refresh=False, screen=count is None) as live:

        def show(before: Sample | None, now: Sample) -> None:
            live.update(screen(view(before, now), live.console.width), refresh=True)

        last = asyncio.run(_look(session, servers, interval_s, count, show))
    require_leader(last.report)


async def _look(
    session: Session,
    servers: tuple[str, ...],
    interval_s: float,
    count: int | None,
    show: Callable[[Sample | None, Sample], None],
) -> Sample:
    before: Sample | None = None
    looks = 0
    while True:
        asked = await ask_all(session, servers)
        now = Sample(time.monotonic(), evaluate(asked, is_sasl=session.is_sasl))
        show(before, now)
        before, looks = now, looks + 1
        if looks == count:
            return now
        await asyncio.sleep(interval_s)


def _written(session: Session) -> Callable[[Sample | None, Sample], None]:
    def show(before: Sample | None, now: Sample) -> None:
        result = view(before, now)
        if session.output == "jsonl":
            write_lines([result.document()], sys.stdout)
        else:
            session.show(result)
            click.echo()
        sys.stdout.flush()

    return show


def view(before: Sample | None, now: Sample) -> Result:
    """Return one look: the quorum as a whole with its rates since the last look, and its nodes."""
    report = now.report
    return Result(
        "QuorumTop",
        {
            "cluster_id": report.cluster_id,
            "leader_id": report.leader_id,
            "leader_epoch": report.leader_epoch,
            "high_watermark": report.high_watermark,
            "committed_per_s": committed_per_s(before, now),
            "margin": report.margin,
            "is_healthy": report.is_healthy,
        },
        rows=report.rows,
        columns=_COLUMNS,
    )


def committed_per_s(before: Sample | None, now: Sample) -> float | None:
    """Return the records that were committed per second; None if one of the two knows no leader."""
    if before is None or min(before.report.high_watermark, now.report.high_watermark) < 0:
        return None
    seconds = max(now.at_s - before.at_s, 1e-3)
    records = now.report.high_watermark - before.report.high_watermark
    return round(max(0, records) / seconds, 1)
