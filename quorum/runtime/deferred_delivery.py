"""When a replica that does not lead tells its listener: not at once, and commits several together.

Nobody but a reader of this replica waits for its image, while the leader waits for its
acknowledgement. Applying what was committed write by write costs a follower more than receiving
it does, at the very moment when the leader answers; a few writes together cost little more than
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from quorum.core.contract.local_events import LocalEvent
from quorum.core.contract.output import HighWatermarkAdvanced, Progress

GATHERED_RECORDS_MAX: Final = 32
"""Committed records for which there is nothing more to be won by waiting for others."""


class DeferredDelivery:
    """What one driver has asked for. Not thread-safe.

    ``on_due`` is told whether what was put off is urgent: it is called once for commits that may
    gather, and once more when something urgent comes on top.
    """

    def __init__(self, on_due: Callable[[bool], None]) -> None:
        self._on_due = on_due
        self._is_urgent = False
        self.is_due = False
        """Whether ``on_due`` was called and nothing has been told since."""

    def note(self, progress: Iterable[Progress | LocalEvent], delivered_end: int) -> None:
        """This waits for the listener, who has the records below ``delivered_end``."""
        if self._is_urgent:
            return
        is_urgent = any(
            type(each) is not HighWatermarkAdvanced
            or each.high_watermark - delivered_end >= GATHERED_RECORDS_MAX
            for each in progress
        )
        if is_urgent or not self.is_due:
            self.is_due = True
            self._is_urgent = is_urgent
            self._on_due(is_urgent)

    def told(self) -> None:
        """The listener is being told everything."""
        self.is_due = self._is_urgent = False
