"""``quorate feature``: what the cluster has switched on, and what it could."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quorate import client as library
from quorate.cli.command import NounGroup, pass_session
from quorate.cli.completions import features
from quorate.cli.connection import (
    ask,
    confirm,
    position_fields,
    read_option,
    show_applied,
    write_options,
)
from quorate.cli.did_you_mean import did_you_mean
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorate.client.results.commands import UpdateFeaturesResult
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import ReadOptions

if TYPE_CHECKING:
    from quorate.client import Applied, Client


@click.group(cls=NounGroup)
def feature() -> None:
    """Show, raise and lower feature levels."""


@feature.command()
@read_option
@pass_session
def describe(session: Session, read: ReadOptions) -> None:
    """Show every feature: its finalised level and what the answering node supports."""
    answer = ask(session, lambda client: client.describe_features(read=read))
    session.show(
        Result(
            "FeatureList",
            position_fields(answer.position),
            rows=[
                {
                    "feature": found.name,
                    "supported_min": found.supported_min,
                    "supported_max": found.supported_max,
                    "finalized": found.finalized_level,
                }
                for found in answer.features
            ],
            columns=("feature", "supported_min", "supported_max", "finalized"),
        )
    )


_levels = click.argument(
    "levels", nargs=-1, required=True, metavar="NAME=LEVEL...", shell_complete=features
)


@feature.command()
@_levels
@write_options
@pass_session
def upgrade(session: Session, levels: tuple[str, ...], dry_run: bool, reason: str) -> None:
    """Raise features to the levels given; all or none. There is no way back to be relied on."""
    _update(session, levels, wire.FEATURE_UPGRADE_TYPE_UPGRADE, "FeaturesUpgraded",
            dry_run=dry_run, reason=reason)  # fmt: skip


@feature.command()
@_levels
@click.option(
    "--unsafe", is_flag=True,
    help="Also if metadata is lost by it; without it that is refused.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_session
def downgrade(
    session: Session,
    levels: tuple[str, ...],
    unsafe: bool,
    yes: bool,
    dry_run: bool,
    reason: str,
) -> None:
    """Lower features to the levels given; all or none. Level 0 disables a feature."""
    kind = wire.FEATURE_UPGRADE_TYPE_SAFE_DOWNGRADE
    if unsafe:
        confirm("Downgrade although metadata may be lost?", is_sure=yes or dry_run)
        kind = wire.FEATURE_UPGRADE_TYPE_UNSAFE_DOWNGRADE
    _update(session, levels, kind, "FeaturesDowngraded", dry_run=dry_run, reason=reason)


def _update(
    session: Session,
    levels: tuple[str, ...],
    upgrade_type: wire.FeatureUpgradeType,
    kind: str,
    *,
    dry_run: bool,
    reason: str,
) -> None:
    updates = []
    for text in levels:
        name, equals, level = text.partition("=")
        if not equals or not level.isdecimal():
            raise CliError(f"{text!r}: write it as name=level", code=Exit.USAGE)
        updates.append(wire.FeatureUpdate(name=name, level=int(level), upgrade_type=upgrade_type))

    async def work(client: Client) -> Applied:
        try:
            return await client.update_features(updates, dry_run=dry_run)
        except library.RefusedError as error:
            if error.code != ErrorCode.INVALID_UPDATE_VERSION:
                raise
            known = [each.name for each in (await client.describe_features()).features]
            unknown = [each.name for each in updates if each.name not in known]
            if not unknown:
                raise
            raise CliError(
                f"no such feature: {', '.join(unknown)}",
                hint=did_you_mean(unknown[0], known) or "`quorate feature describe` shows all",
                code=Exit.NOT_FOUND,
            ) from error

    applied = ask(session, work, reason=reason)
    show_applied(
        session,
        kind,
        applied,
        dry_run=dry_run,
        features={
            found.name: found.level for found in applied.yielded(UpdateFeaturesResult).features
        },
    )
