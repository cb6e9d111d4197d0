"""The demo's output: numbered steps, facts below them, one live line while something runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from quorum.errors import QuorateError


class StepFailedError(QuorateError):
    """A step of the demo failed; names the step and the cause."""


class Stage:
    """Writes to a console. Steps are numbered as they begin."""

    def __init__(self, console: Console, steps: int) -> None:
        self.console = console
        self._steps = steps
        self._number = 0

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """One step: its title, what happens in it, the time it took.

        Raises:
            StepFailedError: Whatever went wrong inside, with the step's name.
        """
        self._number += 1
        name = f"[{self._number}/{self._steps}] {title}"
        self.console.print(f"\n[bold cyan]{name}[/]")
        began = time.monotonic()
        try:
            yield
        except StepFailedError:
            raise
        except Exception as error:
            raise StepFailedError(f"step {name}: {type(error).__name__}: {error}") from error
        self.console.print(f"   [green]done[/] in {time.monotonic() - began:.1f} s")

    def announce(self, text: str) -> None:
        """One fact, indented below the step."""
        self.console.print(f"   {text}", highlight=False, soft_wrap=True)

    def show(self, text: str) -> None:
        """Print the output of a command or a page unchanged."""
        for line in text.rstrip().splitlines():
            self.console.print(f"   | {line}", markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def bar(self, label: str, total: int | None) -> Iterator[Bar]:
        """A live bar; without a terminal, a line when it ends."""
        columns = (
            TextColumn("   {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as progress:
            bar = Bar(progress, label, total)
            yield bar
        self.announce(f"{label}: {bar.done}")


class Bar:
    """A count that is seen while it grows."""

    def __init__(self, progress: Progress, label: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(label, total=total)
        self.done = 0

    def advance(self) -> None:
        """One more."""
        self.done += 1
        self._progress.advance(self._task)

    def set(self, done: int, total: int | None = None) -> None:
        """Set the count."""
        self.done = done
        self._progress.update(self._task, completed=done, total=total)
