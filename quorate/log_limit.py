"""Bounds the lines of one kind in the process log, so that callers cannot fill a disk.

Anyone who can reach a port can make the node log refusals, closed streams and ignored messages.
Each kind of line has a maximum per minute. Further lines are counted, and the count is written with
the first line after that minute.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LINES_PER_KIND_MAX: Final = 200
"""Lines of one kind in one window."""
BYTES_MAX: Final = 512 << 10
"""Bytes of all kinds in one window, beyond which only errors are written, each kind at most
``ERRORS_PER_KIND_MAX`` times."""
ERRORS_PER_KIND_MAX: Final = 10
WINDOW_S: Final = 60.0
KINDS_MAX: Final = 256
"""Kinds counted separately in one window; all others of a level are one kind."""
LINE_CHARACTERS_MAX: Final = 8192
"""A longer line is cut: texts of others are parts of some."""

_WORDS: Final = re.compile(r"event=\w+|[^\d\s=:]+")
Kind = tuple[str, str, int]


@dataclass(slots=True)
class _Count:
    written: int = 0
    suppressed: int = 0


class LineLimit:
    """Decides which lines are written. Any thread may ask; ``logging`` holds the handler's lock.

    A kind is logger, level and what the line is about: its event, or its first words for a line
    without one. Debug lines are not limited: who switches them on wants all.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began = now()
        self._bytes = 0
        self._counts: dict[Kind, _Count] = {}
        self.suppressed = 0
        """Lines that were not written since the start; any thread may read."""

    def admits(self, record: logging.LogRecord) -> bool:
        """Whether a line for ``record`` is written. It counts either way."""
        if record.levelno <= logging.DEBUG:
            return True
        count = self._counts.get(kind := kind_of(record))
        if count is None:
            if len(self._counts) >= KINDS_MAX:
                kind = ("", "others", record.levelno)
            count = self._counts.setdefault(kind, _Count())
        is_over = self._bytes >= BYTES_MAX
        most = LINES_PER_KIND_MAX
        if is_over:
            most = ERRORS_PER_KIND_MAX if record.levelno >= logging.ERROR else 0
        if count.written >= most:
            count.suppressed += 1
            self.suppressed += 1
            return False
        count.written += 1
        return True

    def wrote(self, size: int) -> None:
        """A line of so many characters was written."""
        self._bytes += size

    def summary(self) -> list[str]:
        """What was suppressed in the window that is over, one line per kind; [] while it lasts.

        A new window begins with it.
        """
        if self._now() - self._began < WINDOW_S:
            return []
        ended = self._counts
        self._began, self._bytes, self._counts = self._now(), 0, {}
        return [
            f"event=log_lines_suppressed logger={kind[0] or '-'} about={kind[1]} "
            f"lines={count.suppressed}"
            for kind, count in ended.items()
            if count.suppressed
        ]


def kind_of(record: logging.LogRecord) -> Kind:
    """What lines are counted together."""
    text = record.getMessage()[:200]
    words = _WORDS.findall(text)
    about = words[0] if words and words[0].startswith("event=") else " ".join(words[:2])
    return record.name, about or "-", record.levelno
