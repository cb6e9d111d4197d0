"""``quorate config show``: the settings of this node, and where each comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.node_options import config_options, load_unjudged
from quorate.cli.output import Result
from quorate.cli.session import Session

if TYPE_CHECKING:
    from quorate.config.settings import Value


@click.command("show", cls=LocalCommand)
@config_options
@click.option("--origin", is_flag=True, help="Also show which source set each value.")
@click.option("--changed", is_flag=True, help="Only values that some source set.")
@click.option("--explain", is_flag=True, help="Also show meaning and Kafka's name.")
@pass_session
def show(
    session: Session,
    file: Path | None,
    settings: tuple[str, ...],
    origin: bool,
    changed: bool,
    explain: bool,
) -> None:
    """Show this node's settings after merging defaults, file, environment and flags.

    Values that cannot work are shown all the same; the problems follow and the exit code is 2.
    """
    from quorate.config.settings import settings as all_settings

    loaded = load_unjudged(file, settings)
    rows = []
    for key, setting in all_settings().items():
        if changed and loaded.origins[key] == "default":
            continue
        row: dict[str, object] = {"key": key, "value": _shown(loaded.values[key])}
        if origin:
            row["origin"] = loaded.origins[key]
        if explain:
            row["meaning"] = setting.declared.help
            row["kafka"] = setting.declared.kafka or None
        rows.append(row)
    columns = ["key", "value"] + ["origin"] * origin + ["meaning", "kafka"] * explain
    session.show(Result("NodeConfig", rows=rows, columns=columns))
    loaded.config.validate()


def _shown(value: Value) -> object:
    if isinstance(value, Path):
        return "" if value == Path() else str(value)
    return list(value) if isinstance(value, tuple) else value
