"""A bar on standard error while something long runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_on(
    label: str, total: float | None, *, is_colourless: bool
) -> Iterator[Callable[[float], None]]:
    """Show a bar; the result moves it on by so much."""
    console = Console(stderr=True, no_color=is_colourless)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield partial(bar.advance, bar.add_task(label, total=total))
