"""One message of a write stream while it is being filled."""

from __future__ import annotations

from quorate.client.pending import Pending, PendingProducerSession
from quorum.v1.metadata_pb2 import ProducerCommands, WriteStreamRequest


class OutgoingCommands:
    """Commands by producer, in the order in which they were added."""

    def __init__(self, *, is_ordered: bool) -> None:
        self.request = WriteStreamRequest()
        self._groups: dict[PendingProducerSession | None, ProducerCommands] = {}
        self._is_ordered = is_ordered

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, pending: Pending, tag: int) -> None:
        """Add one copy of a command under a tag of the stream."""
        command = pending.command
        command.tag = tag
        pending.attempts += 1
        command.is_repeat = pending.attempts > 1
        session = pending.producer_session
        pending.was_oldest = session is not None and session.oldest_open == command.sequence
        self._group(pending.producer_session).commands.append(command)

    def _group(self, producer_session: PendingProducerSession | None) -> ProducerCommands:
        group = self._groups.get(producer_session)
        if group is None:
            if producer_session is None:
                group = self.request.groups.add()
            else:
                group = self.request.groups.add(
                    producer_id=producer_session.producer_id,
                    producer_epoch=producer_session.producer_epoch,
                    oldest_open=producer_session.oldest_open,
                    is_ordered=self._is_ordered,
                )
            self._groups[producer_session] = group
        return group
