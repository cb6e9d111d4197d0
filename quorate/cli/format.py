"""``quorate format``: make a data directory for a node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.node_options import config_options, load
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.config.addresses import CONTROLLER_LISTENER, parse_address
from quorate.config.voter_addresses import parse_voter
from quorum.errors import IdentityDamagedError, IdentityError
from quorum.log.filesystem import OsFileSystem
from quorum.types import (
    ZERO_UUID,
    Endpoint,
    ReplicaKey,
    Uuid,
    Voter,
    draw_directory_id,
    uuid_from_text,
    uuid_to_text,
)

if TYPE_CHECKING:
    from quorate.config.server_config import ServerConfig
    from quorate.formatting import FormatPlan, FormatReport


@click.command("format", cls=LocalCommand)
@config_options
@click.option(
    "--cluster-id", required=True, metavar="ID", help="The cluster's id, equal on all nodes."
)
@click.option("--node-id", type=WholeNumber(min=0), help="Short for --set node.id=N.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Short for --set node.data_dir=..."
)
@click.option("--standalone", is_flag=True, help="This node is the only initial voter.")
@click.option(
    "--initial-voters",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="All initial voters with their directory ids; the same text on every one of them.",
)
@click.option(
    "--no-initial-voters", is_flag=True, help="This node joins a cluster that has voters."
)
@click.option(
    "--log-incarnation",
    metavar="ID",
    help="Of a recovered or restored cluster; `quorum describe status` shows the id.",
)
@click.option(
    "--unsafe-lone-directory-id",
    is_flag=True,
    help="Take a directory id from --initial-voters although this node is the only one of them.",
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Start at this level instead of the default. Repeatable.",
)
@click.option(
    "--ignore-formatted", is_flag=True, help="Leave a directory that is this node's already."
)
@pass_session
def format_command(session: Session, file: Path | None, settings: tuple[str, ...], cluster_id: str,
                   node_id: int | None, data_dir: Path | None, standalone: bool,
                   initial_voters: str | None, no_initial_voters: bool,
                   log_incarnation: str | None,
                   unsafe_lone_directory_id: bool, features: tuple[str, ...],
                   ignore_formatted: bool) -> None:  # fmt: skip
    """Make a data directory: identity and the checkpoint that the cluster starts from.

    Give exactly one of --standalone, --initial-voters and --no-initial-voters, or none of them
    when the configuration names bootstrap.voters.
    """
    # Loaded here: help needs neither a configuration nor records.
    from quorate.features import KRAFT_VERSION_MAX, readers_of
    from quorate.formatting import FormatPlan
    from statemachine.feature_levels import KRAFT_VERSION
    from statemachine.records import METADATA_VERSION

    if node_id is not None:
        settings += (f"node.id={node_id}",)
    if data_dir is not None:
        settings += (f"node.data_dir={data_dir}",)
    config = load(file, settings).config
    voters_given = (standalone, initial_voters is not None, no_initial_voters)
    _check_choice(voters_given, has_static=bool(config.bootstrap.voters))
    voters = _parse_voters(initial_voters or "")
    own = [voter.key.directory_id for voter in voters if voter.key.id == config.node.id]
    if initial_voters is not None and not own:
        raise CliError(
            f"node {config.node.id} is not among the initial voters",
            hint="a node that joins later is formatted with --no-initial-voters",
            code=Exit.USAGE,
        )
    if len(voters) == 1 and own[0] != ZERO_UUID and not unsafe_lone_directory_id:
        # Run again on an empty disk it would format a second replica of this id, unnoticed.
        raise CliError(
            "one initial voter with a directory id that is given: repeated on an empty disk, the "
            "same command makes a voter that has forgotten its votes and does not know it",
            hint="use --standalone, which draws a directory id",
            code=Exit.REFUSED,
        )
    directory_id = own[0] if own else draw_directory_id(os.urandom)
    if standalone:
        voters = (_own_voter(config, directory_id),)
    is_native = config.cluster.record_codec == "native"
    levels = _levels(features, is_native=is_native)
    kraft_version = levels.pop(KRAFT_VERSION, KRAFT_VERSION_MAX if any(voters_given) else 0)
    plan = FormatPlan(
        data_dir=config.node.data_dir,
        cluster_id=cluster_id,
        node_id=config.node.id,
        directory_id=directory_id,
        voters=voters,
        levels=levels,
        uses_native_codec=is_native,
        kraft_version=kraft_version,
        log_incarnation_id=_incarnation_id(log_incarnation),
    )
    report = _formatted(plan, ignore_formatted=ignore_formatted)
    session.show(_shown(plan, report))
    if report.was_formatted:
        session.announce("was formatted already; nothing changed")
    elif not is_native:
        session.announce(
            f"{METADATA_VERSION} {levels[METADATA_VERSION]}: Kafka {readers_of(levels)} and later "
            "read these files, older releases refuse them"
        )


def _formatted(plan: FormatPlan, *, ignore_formatted: bool) -> FormatReport:
    from quorate.formatting import format_directory

    try:
        return format_directory(OsFileSystem(), plan, ignore_formatted=ignore_formatted)
    except IdentityDamagedError:
        raise
    except IdentityError as error:
        # The hint elsewhere is to run `quorate format`.
        raise CliError(
            str(error),
            hint="nothing was changed; start its node, or name another folder with --data-dir",
            code=Exit.USAGE,
        ) from error


def _incarnation_id(text: str | None) -> Uuid:
    if text is None:
        return ZERO_UUID
    try:
        return uuid_from_text(text)
    except ValueError as error:
        raise CliError(f"--log-incarnation: {error}", code=Exit.USAGE) from error


def _shown(plan: FormatPlan, report: FormatReport) -> Result:
    return Result(
        "Format",
        {
            "data_dir": str(plan.data_dir),
            "cluster_id": report.identity.cluster_id,
            "node_id": report.identity.node_id,
            "directory_id": uuid_to_text(report.identity.directory_id),
            "log_incarnation": uuid_to_text(report.identity.log_incarnation_id)
            if report.identity.log_incarnation_id != ZERO_UUID
            else None,
            "formatted": not report.was_formatted,
            "record_codec": "native" if plan.uses_native_codec else "kafka",
            "levels": None if report.was_formatted else dict(plan.levels),
        },
    )


def _check_choice(given: tuple[bool, bool, bool], *, has_static: bool) -> None:
    if has_static and any(given):
        raise CliError(
            "initial voters are given here and as bootstrap.voters; leave one out", code=Exit.USAGE
        )
    if sum(given) != 1 and not has_static:
        raise CliError(
            "give exactly one of --standalone, --initial-voters and --no-initial-voters",
            hint="--standalone makes a cluster of this node alone",
            code=Exit.USAGE,
        )


def _parse_voters(text: str) -> tuple[Voter, ...]:
    try:
        return tuple(parse_voter(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise CliError(f"--initial-voters: {error}", code=Exit.USAGE) from error


def _own_voter(config: ServerConfig, directory_id: Uuid) -> Voter:
    host, port = parse_address(config.listeners.reached_by_peers_at)
    if port == 0:
        raise CliError(
            "--standalone writes this node's address down, so its port must not be 0",
            hint="set listeners.client or listeners.advertised_peer",
            code=Exit.USAGE,
        )
    return Voter(
        ReplicaKey(config.node.id, directory_id),
        endpoints=(Endpoint(CONTROLLER_LISTENER, host, port),),
    )


def _levels(features: tuple[str, ...], *, is_native: bool) -> dict[str, int]:
    from quorate.features import INITIAL_LEVELS, KAFKA_INITIAL_LEVELS

    levels = dict(INITIAL_LEVELS if is_native else KAFKA_INITIAL_LEVELS)
    for text in features:
        name, equals, level = text.partition("=")
        if not equals or not level.isdecimal():
            raise CliError(f"--feature {text}: write it as name=level", code=Exit.USAGE)
        levels[name.strip()] = int(level)
    return levels
