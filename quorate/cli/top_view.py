"""How ``quorate top`` looks on a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from quorate.cli.cells import as_text
from quorate.cli.output import Result

_COLOURS = {"leader": "green", "voter": "", "observer": "cyan"}


def screen(result: Result) -> Group:
    """Return a look as one line about the quorum, and a line for each node, problems in red."""
    fields = result.fields
    state = "healthy" if fields["is_healthy"] else "NOT HEALTHY"
    head = Text()
    head.append(f"{as_text(fields['cluster_id'])}  ", style="bold")
    head.append(state, style="green" if fields["is_healthy"] else "bold red")
    head.append(
        f"  leader {as_text(fields['leader_id'])} in epoch {as_text(fields['leader_epoch'])}"
        f"  high watermark {as_text(fields['high_watermark'])}"
        f"  {as_text(fields['committed_per_s'])} records/s"
        f"  {as_text(fields['margin'])} more may fail"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in result.columns:
        table.add_column(column.upper(), overflow="fold")
    for row in result.rows or ():
        style = "red" if row["problem"] else _COLOURS.get(str(row["role"]), "")
        table.add_row(*(Text(as_text(row[column])) for column in result.columns), style=style)
    return Group(head, Text(), table)
