"""A simulated replica as the services see it: its log, and a disk that reads at once."""

from __future__ import annotations

from quorate.replica.log_facts import LogFacts
from quorate.services.ports import Leadership
from quorum.types import NodeId
from statemachine.image import MetadataImage


class Served(LogFacts):
    """A replica without addresses, which serves watchers and consumers of the log."""

    @property
    def node_id(self) -> NodeId:
        """This node."""
        return self._replica.key.id

    @property
    def leadership(self) -> Leadership:
        """Return the leader of the current epoch."""
        return Leadership(self._node.leader_id, self._node.epoch)

    async def read_log(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches from ``offset`` on, without waiting.

        Raises:
            StorageError: The log could not be read.
            QuorumUsageError: The log no longer has ``offset``.
        """
        found = self.reading(offset, max_bytes, end_offset)
        return found if isinstance(found, bytes) else found()

    async def checkpoint_image(self, at_least_offset: int) -> MetadataImage | None:
        """Return the state of the lowest checkpoint at or above an offset, without waiting."""
        return self.checkpoint_reading(at_least_offset)()

    async def log_digest(self, offset: int) -> bytes:
        """Return the digest of everything below ``offset``, without waiting; empty if unknown."""
        return self.digest_reading(offset)()
