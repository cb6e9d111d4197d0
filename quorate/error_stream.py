"""Standard error that cannot fail: a text that cannot be written does not change the exit code.

Where standard error is a file on a full disk, each write to it fails. The exit code must still say
what happened: a script or a service manager acts on it.

Imports nothing that takes time to load: ``quorate.entry`` calls it first.
"""

from __future__ import annotations

import io
import sys


def lose_what_cannot_be_written() -> None:
    """From now on ``sys.stderr`` drops what its file refuses. No effect where it is replaced."""
    stream = sys.__stderr__
    if stream is None or stream is not sys.stderr:
        return
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Lossy(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


class _Lossy(io.FileIO):
    """A file that takes every byte."""

    def write(self, data: bytes, /) -> int | None:  # type: ignore[override]
        try:
            written = super().write(data)
        except OSError:
            return len(data)
        # None: a pipe that does not block is full.
        return len(data) if written is None else written
