"""What the core's progress means for the listener and the parts around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from quorum.core.contract.local_events import LocalEvent, SnapshotRemoved
from quorum.core.contract.output import (
    HighWatermarkAdvanced,
    LeaderEndpoints,
    LeadershipChanged,
    LogTruncated,
    PeerEndpoints,
    Progress,
    ReadConfirmed,
    ReadFailed,
    RequestSettled,
    SnapshotInstalled,
    VerifyLog,
    VotersChanged,
)
from quorum.runtime.delivery import Delivery
from quorum.runtime.peer_addresses import PeerAddresses
from quorum.runtime.ports import Listener

OnSettled: TypeAlias = Callable[[RequestSettled], None]


class Notifications:
    """Passes each notification to the part that it is for. One per driver.

    Args:
        on_verify: Verifies the log's files.
        on_local_event: Passes an event to the core.
    """

    def __init__(
        self,
        delivery: Delivery,
        listener: Listener,
        addresses: PeerAddresses,
        on_verify: Callable[[VerifyLog], None],
        on_local_event: Callable[[LocalEvent], None],
    ) -> None:
        self._delivery = delivery
        self._listener = listener
        self._addresses = addresses
        self._on_verify = on_verify
        self._on_local_event = on_local_event
        self.asked: dict[int, OnSettled] = {}
        """By token, who waits for the outcome of an operator's request."""

    def notify(self, progress: Progress | LocalEvent) -> None:
        """Deliver what was committed, or pass on what else the core reports."""
        listener = self._listener
        match progress:
            case HighWatermarkAdvanced(high_watermark=high_watermark):
                self._delivery.deliver_to(high_watermark)
            case LeadershipChanged():
                listener.on_leadership(progress)
            case LogTruncated(end_offset=end_offset):
                listener.on_truncated(end_offset)
            case SnapshotInstalled(snapshot_id=snapshot_id):
                self._delivery.restart_at(snapshot_id.offset)
                listener.on_snapshot(snapshot_id)
            case ReadConfirmed(token=token, read_offset=read_offset):
                listener.on_read_confirmed(token, read_offset)
            case ReadFailed(token=token):
                listener.on_read_failed(token)
            case RequestSettled():
                on_settled = self.asked.pop(progress.token, None)
                if on_settled is not None:
                    on_settled(progress)
            case VotersChanged() | LeaderEndpoints() | PeerEndpoints():
                self._addresses.learn(progress)
            case VerifyLog():
                self._on_verify(progress)
            case SnapshotRemoved():
                self._on_local_event(progress)
