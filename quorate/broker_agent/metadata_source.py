"""``MetadataSource``: where an agent gets the metadata from, one step after the other.

Two implementations: ``WatchedLog`` asks a node as a client does, ``ObservedLog`` reads the observer
that runs in the agent's own process. What follows from the steps is the same.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, TypeAlias

from quorate.broker_agent.image_feed import ImageChange
from statemachine.image import MetadataImage

MetadataStep: TypeAlias = MetadataImage | ImageChange
"""An image: forget everything, the metadata is this. A change: it begins where the last step ended.
"""


class MetadataSource(Protocol):
    """Committed metadata of one cluster, in the order of its log. Used by one task."""

    def steps(self) -> AsyncGenerator[MetadataStep]:
        """Yield an image, and then every change, for ever; no difference is passed over.

        Raises:
            LogTruncationError: What was yielded is no longer part of the log. Calling this again
                begins anew.
            QuorateError: The source is of no more use; the message says why.
        """
