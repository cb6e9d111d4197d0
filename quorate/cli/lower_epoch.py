"""``quorate unsafe-lower-epoch``: the repair of a quorum whose epochs are used up."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.directory_lock import locked
from quorate.cli.exits import CliError, Exit
from quorate.cli.node_options import config_options, load_unjudged
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import partition_directory
from quorum.types import EPOCH_MAX, ElectionState, Epoch


@click.command("unsafe-lower-epoch", cls=LocalCommand)
@config_options
@click.option(
    "--to",
    "target",
    type=WholeNumber(min=1, max=EPOCH_MAX),
    metavar="EPOCH",
    help="The new epoch, the same on every voter. Without it nothing is changed.",
)
@pass_session
def lower_epoch(
    session: Session, file: Path | None, settings: tuple[str, ...], target: int | None
) -> None:
    """Set the epoch of a stopped node back, for a quorum whose epochs are used up.

    Stop every voter first. Without --to the command shows the node's epoch and the newest epoch of
    its records. Choose a number above the newest epoch of the records of all voters, and give it
    to every one of them before any is started. A voter that is left out must be formatted anew.
    """
    # Loaded here: help needs no logs.
    from quorum.log.election_store import ElectionFile
    from quorum.log.identity import load_identity

    data_dir = load_unjudged(file, settings).config.node.data_dir
    fs = OsFileSystem()
    identity = load_identity(fs, data_dir)
    with locked(data_dir):
        store = ElectionFile(fs, partition_directory(data_dir), identity.directory_id)
        state = store.load()
        newest = _newest_epoch(fs, data_dir, state)
        if target is not None:
            _check(target, state.epoch, newest)
            store.save(
                ElectionState(target, vote_floor=state.vote_floor, disqualified=state.disqualified)
            )
    session.show(
        Result(
            "Epoch",
            {
                "node_id": identity.node_id,
                "epoch": state.epoch if target is None else target,
                "epoch_before": state.epoch,
                "newest_epoch_of_records": newest,
                "is_changed": target is not None,
            },
        )
    )


def _newest_epoch(fs: OsFileSystem, data_dir: Path, state: ElectionState) -> Epoch:
    """The newest epoch that anything on this disk was written in, or promised about."""
    from quorate.recovery.newest_epoch import newest_record_epoch
    from quorum.log.readonly import open_readonly

    log = open_readonly(data_dir, fs)
    try:
        if log.damage is not None:
            raise CliError(
                f"the log is damaged, so its newest epoch is not known: {log.damage}",
                hint="see docs/operations/recover.md, section Damage",
                code=Exit.DAMAGED,
            )
        return newest_record_epoch(fs, data_dir, log, state)
    finally:
        log.close()


def _check(target: Epoch, epoch: Epoch, newest: Epoch) -> None:
    if target >= epoch:
        raise CliError(f"epoch {target} is not below the node's epoch {epoch}", code=Exit.USAGE)
    if target <= newest:
        raise CliError(
            f"records of epoch {newest} are on this disk, so epoch {target} has had a leader",
            hint="choose a number above the newest epoch of the records of all voters",
            code=Exit.REFUSED,
        )
