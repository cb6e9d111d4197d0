"""Publishes steps of the image to subscribers, and measures the log since the last checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from quorum.types import SnapshotId
from quorum.values import value
from statemachine.changes import ChangeCounter
from statemachine.image import MetadataImage


@value
class Published:
    """One step of the published image.

    ``data`` holds the committed batches between the two, whole and contiguous, in pieces; it
    is empty when a checkpoint replaced the image (``snapshot_id`` says which), so that the single
    changes are not known.
    """

    before: MetadataImage
    after: MetadataImage
    data: tuple[bytes, ...] = ()
    snapshot_id: SnapshotId | None = None

    @property
    def base_offset(self) -> int:
        """Where ``data`` begins (inclusive)."""
        return self.before.provenance.end_offset

    @property
    def end_offset(self) -> int:
        """What the new image ends at (exclusive)."""
        return self.after.provenance.end_offset


Subscriber: TypeAlias = Callable[[Published], None]
"""Called on the controller's thread after every step; must be quick and must not raise."""


class Subscribers:
    """Subscribers to the image, in the order of subscription."""

    def __init__(self) -> None:
        self._subscribers: dict[int, Subscriber] = {}
        self._next_key = 0

    def add(self, subscriber: Subscriber) -> Callable[[], None]:
        """Subscribe from the next step on. Calling the result ends the subscription."""
        key = self._next_key
        self._next_key += 1
        self._subscribers[key] = subscriber

        def cancel() -> None:
            self._subscribers.pop(key, None)

        return cancel

    def notify(self, published: Published) -> None:
        """Notify all subscribers; a subscription may end meanwhile."""
        for subscriber in tuple(self._subscribers.values()):
            subscriber(published)

    def __len__(self) -> int:
        return len(self._subscribers)


class CheckpointProgress:
    """The two figures of requirement 630.4: changed records and bytes since the checkpoint.

    A checkpoint is written while the log goes on: what comes after its capture counts towards
    the next one when it completes.
    """

    def __init__(self, changes: ChangeCounter) -> None:
        self.changes = changes
        self.bytes_since = 0
        """Bytes applied since the latest checkpoint's end."""
        self._bytes_since_capture: int | None = None

    @property
    def is_capturing(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._bytes_since_capture is not None

    def applied(self, size_bytes: int) -> None:
        """Count bytes of committed batches that were applied."""
        self.bytes_since += size_bytes
        if self._bytes_since_capture is not None:
            self._bytes_since_capture += size_bytes

    def capture(self) -> None:
        """Record that a checkpoint of the present image is being written.

        Raises:
            QuorumUsageError: One is under way already.
        """
        self.changes.capture()
        self._bytes_since_capture = 0

    def complete(self, snapshot_records: int) -> None:
        """Record that the checkpoint is on disk, and its number of data records.

        Raises:
            QuorumUsageError: None was under way.
        """
        self.changes.complete(snapshot_records)
        self.bytes_since = self._bytes_since_capture or 0
        self._bytes_since_capture = None

    def abandon(self) -> None:
        """Record that the checkpoint failed; counting continues as if it had not begun."""
        self.changes.abandon()
        self._bytes_since_capture = None

    def start_over(self) -> None:
        """Record that a checkpoint was loaded: no record after it is applied yet."""
        self.bytes_since = 0
        self._bytes_since_capture = None
