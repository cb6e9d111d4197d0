"""After a restart, a partial download is a prefix of its checkpoint (ADR 50)."""

from __future__ import annotations

from typing import ClassVar

from quorum.core.messages.message_types import Message
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.types import NodeId, SnapshotId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen
from snapshot.naming import FileState, file_path


class ResumedDownloads(Invariant):
    """Kept bytes are a prefix of a checkpoint of that id; no download resumes in another one.

    Checkpoints are recorded when they are written. One that was corrupt by then is not recorded,
    and its part files are not checked. A node with a forged log writes a different one, which
    counts as well.
    """

    name = "resumed-downloads"
    sent_kinds: ClassVar[tuple[type, ...]] = (FetchSnapshotRequest,)
    received_kinds: ClassVar[tuple[type, ...]] = (FetchSnapshotResponse,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self._contents: dict[SnapshotId, set[bytes]] = {}
        self._begun: dict[NodeId, tuple[Seen, set[SnapshotId]]] = {}
        """By node: its present incarnation, and the checkpoints of which it has bytes."""

    def on_checkpoint(self, seen: Seen, snapshot_id: SnapshotId, content: bytes) -> None:
        del seen
        self._contents.setdefault(snapshot_id, set()).add(content)

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        del before
        begun: set[SnapshotId] = set()
        self._begun[seen.id] = seen, begun
        stores = seen.replica.stores
        found = stores.state.download
        if found is None:
            return
        begun.add(found.snapshot_id)
        path = file_path(stores.directory, found.snapshot_id, FileState.PART)
        # Not by the store, which offers no way to read a part file.
        file = stores.snapshots._fs.open(path)  # noqa: SLF001
        kept = file.read_at(0, file.size())
        file.close()
        self.require(
            len(kept) == found.size,
            "part file and download differ in length",
            node=seen.id,
            snapshot=found.snapshot_id,
        )
        contents = self._contents.get(found.snapshot_id, ())
        self.require(
            not contents or any(each.startswith(kept) for each in contents),
            "kept bytes of a download are not a prefix of that checkpoint",
            node=seen.id,
            snapshot=found.snapshot_id,
            kept_bytes=found.size,
        )

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        del sender
        if isinstance(message, FetchSnapshotResponse) and message.chunk:
            self._of(seen).add(message.snapshot_id)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        del to
        if (
            isinstance(message, FetchSnapshotRequest)
            and message.position > 0
            and message.snapshot_id not in self._of(seen)
        ):
            self.fail(
                "a download resumes without the beginning of the checkpoint",
                node=seen.id,
                snapshot=message.snapshot_id,
                position=message.position,
            )

    def _of(self, seen: Seen) -> set[SnapshotId]:
        known = self._begun.get(seen.id)
        if known is None or known[0] is not seen:
            known = self._begun[seen.id] = seen, set()
        return known[1]
