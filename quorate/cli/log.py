"""``quorate log``: look into segment and checkpoint files."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.command import NounGroup, pass_session
from quorate.cli.dump_view import show_file
from quorate.cli.session import Session


@click.group(cls=NounGroup)
def log() -> None:
    """Read log segments and checkpoints, ours or Kafka's. Needs no running node."""


@log.command("dump")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--records/--no-records", "with_records", default=True, help="Also show records.")
@click.option("--from-offset", type=click.IntRange(min=0), default=0, help="First offset wanted.")
@click.option("--to-offset", type=click.IntRange(min=0), help="First offset not wanted.")
@click.option("--show-secrets", is_flag=True, help="Show keys and salts of credentials.")
@pass_session
def dump(
    session: Session,
    files: tuple[Path, ...],
    with_records: bool,
    from_offset: int,
    to_offset: int | None,
    show_secrets: bool,
) -> None:
    """Print every batch of FILES and the records inside, one line each.

    With -o json or jsonl each batch is one document. Every checksum is proven; damage ends the
    dump with exit code 8, naming the position.
    """
    for path in files:
        show_file(
            session,
            path,
            with_records=with_records,
            from_offset=from_offset,
            to_offset=to_offset,
            show_secrets=show_secrets,
        )
