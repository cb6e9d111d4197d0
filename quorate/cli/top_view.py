"""How ``quorate top`` looks on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from quorate.cli.cells import as_text, named_text
from quorate.cli.output import Result

_COLOURS = {"leader": "green", "voter": "", "observer": "cyan"}


WIDE: Final = 100
"""On a narrower terminal the end of each log is left out: the lag says what matters of it."""


def screen(result: Result, width: int) -> Group:
    """Return a look as one line about the quorum, and a line for each node, problems in red.

    On ``width`` columns only problems take more than one line.
    """
    columns = [each for each in result.columns if width >= WIDE or each != "log_end_offset"]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column.upper(), overflow="fold", no_wrap=column != "problem")
    for row in result.rows or ():
        style = "red" if row["problem"] else _COLOURS.get(str(row["role"]), "")
        table.add_row(*(Text(named_text(column, row[column])) for column in columns), style=style)
    return Group(_head(result.fields), Text(), table)


def _head(fields: Mapping[str, Any]) -> Text:
    head = Text()
    if fields["cluster_id"] is not None:
        head.append(f"{as_text(fields['cluster_id'])}  ", style="bold")
    head.append(
        "healthy" if fields["is_healthy"] else "NOT HEALTHY",
        style="green" if fields["is_healthy"] else "bold red",
    )
    if fields["leader_id"] < 0:
        head.append("  no node leads" if fields["cluster_id"] is not None else "  no node answers")
        return head
    head.append(
        f"  leader {as_text(fields['leader_id'])} in epoch {as_text(fields['leader_epoch'])}"
        f"  high watermark {as_text(fields['high_watermark'])}"
        f"  {as_text(fields['committed_per_s'])} records/s"
        f"  {as_text(fields['margin'])} more may fail"
    )
    return head
