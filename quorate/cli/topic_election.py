"""``quorate topic elect-leaders``: preferred leaders, or any live one."""

from __future__ import annotations

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.completions import topics
from quorate.cli.connection import ask, confirm, refusal_exit, result_name, write_options
from quorate.cli.exits import CliError
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.client.results.commands import ElectLeadersResult
from quorum.v1 import commands_pb2 as wire


@click.command("elect-leaders", cls=SessionCommand)
@click.argument("name", shell_complete=topics)
@click.option(
    "--partition", "partitions", type=WholeNumber(min=0), multiple=True,
    help="Only this partition. Repeatable.",
)  # fmt: skip
@click.option(
    "--unclean", is_flag=True,
    help="Let a live broker outside the in-sync set lead where there is no leader; loses records.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_session
def elect_leaders(
    session: Session,
    name: str,
    partitions: tuple[int, ...],
    unclean: bool,
    yes: bool,
    dry_run: bool,
    reason: str,
) -> None:
    """Elect leaders of the topic NAME anew: the preferred replica of each partition.

    A partition that its preferred replica leads already stays as it is. If one is refused, the
    others are elected all the same, and the exit code is that of the first refusal.
    """
    if unclean:
        confirm(f"Elect leaders of {name} that may lose records?", is_sure=yes or dry_run)
    kind = wire.ELECTION_TYPE_UNCLEAN if unclean else wire.ELECTION_TYPE_PREFERRED
    applied = ask(
        session,
        lambda client: client.elect_leaders(
            name, partitions=partitions, election_type=kind, dry_run=dry_run
        ),
        reason=reason,
        topic=name,
    )
    results = applied.yielded(ElectLeadersResult).partitions
    rows = [
        {
            "partition": each.partition,
            "leader": each.leader_id,
            "result": result_name(each.error_code),
        }
        for each in results
    ]
    fields = {"name": name, "dry_run": dry_run, "end_offset": applied.offset}
    session.show(
        Result("LeadersElected", fields, rows=rows, columns=("partition", "leader", "result"))
    )
    refused = [each for each in results if each.error_code]
    if refused:
        raise CliError(
            f"{len(refused)} of {len(results)} partitions get no new leader",
            hint="RESULT says why; each keeps its LEADER",
            code=refusal_exit(refused[0].error_code),
        )
