"""Bounds the lines of one kind in the process log, so that callers cannot fill a disk.

Anyone who can reach a port can make the node log refusals, closed streams and ignored messages.
Each kind of line has a maximum per minute. Further lines are counted, and the count is written with
the first line after that minute. A refusal that is repeated (``REPEATED``) is written once a minute
for each kind and peer, with the number of times since.
"""

from __future__ import annotations

import json
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
REPEATED: Final = "repeated"
"""Attribute of a log record: what is the same where a refusal is repeated (``extra``)."""
AGAIN: Final = "again"
"""Attribute of a log record that is written: how often it was repeated since the last line."""
REPEATED_MAX: Final = 256
"""Repeated refusals counted separately; beyond them the one that was written longest ago is
forgotten."""

_WORDS: Final = re.compile(r"event=\w+|[^\d\s=:]+")
Kind = tuple[str, str, int]


@dataclass(slots=True)
class _Count:
    written: int = 0
    suppressed: int = 0


@dataclass(slots=True)
class _Repetition:
    """When one refusal was written last, and how often it was repeated since."""

    written_at: float
    times: int = 0


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
        self._repetitions: dict[str, _Repetition] = {}
        self.suppressed = 0
        """Lines that were not written since the start, apart from repetitions, whose number is in
        the log; any thread may read."""

    def admits(self, record: logging.LogRecord) -> bool:
        """Whether a line for ``record`` is written. It counts either way."""
        if record.levelno <= logging.DEBUG:
            return True
        repeated: str | None = getattr(record, REPEATED, None)
        if repeated is not None and self._is_repeated(repeated, record):
            return False
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

    def _is_repeated(self, repeated: str, record: logging.LogRecord) -> bool:
        found = self._repetitions.get(repeated)
        now = self._now()
        if found is not None and now - found.written_at < WINDOW_S:
            found.times += 1
            return True
        if found is not None and found.times:
            setattr(record, AGAIN, found.times)
        self._repetitions.pop(repeated, None)
        if len(self._repetitions) >= REPEATED_MAX:
            # In order of writing: the first one was written longest ago.
            del self._repetitions[next(iter(self._repetitions))]
        self._repetitions[repeated] = _Repetition(now)
        return False

    def _ended_repetitions(self) -> list[str]:
        """Forget refusals that were not repeated of late; return what was not said of them."""
        now = self._now()
        ended = [
            repeated
            for repeated, each in self._repetitions.items()
            if now - each.written_at >= 2 * WINDOW_S
        ]
        found = [(repeated, self._repetitions.pop(repeated).times) for repeated in ended]
        return [f"event=repeated about={json.dumps(text)} again={n}" for text, n in found if n]

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
        return self._ended_repetitions() + [
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
