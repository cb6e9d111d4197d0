"""A cluster of stub replicas that a test controls, checked by the invariants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from quorate.controller.publishing import Published
from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import Voters
from quorum.core.contract.local_events import PartialDownload
from quorum.core.contract.output import (
    Append,
    Effect,
)
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.runtime.ports import WriteGroup
from quorum.types import (
    LOG_BEGINNING,
    NO_NODE,
    ElectionState,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Voter,
)
from simulation.environment import endpoints_of
from simulation.invariants.mirror import Splitting
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.table import watch
from simulation.memory_filesystem import MemoryFileSystem
from snapshot.naming import FileState, file_path
from statemachine.codec import encode_record
from statemachine.image import EMPTY_IMAGE
from statemachine.records import (
    FeatureLevelRecord,
    MetadataRecord,
)


class _Changing:
    """A core whose state always looks changed, so that the invariants check every step."""

    def __getattr__(self, name: str) -> object:
        return _Changing()


class Stage:
    """A cluster of three stub replicas that a test controls."""

    def __init__(self) -> None:
        self.run_observer: RunObserver = watch()
        self.replicas: dict[int, Any] = {}
        self.folds: dict[int, bytes] = {0: EMPTY_LOG_DIGEST}
        """The digests of the one log that a stub replica knows."""
        self.subscribers: list[Callable[[Published], None]] = []
        self.reports: dict[int, Any] = {}
        """What a node's next start reports as found; by default everything is intact."""
        self.parts: dict[int, tuple[SnapshotId, bytes]] = {}
        """The download that a node's next start finds, with the content of its part file."""
        self.now_ms = 0
        """The time of every node's clock."""
        self._ticket = 0
        for node_id in (1, 2, 3):
            self.open(node_id)

    def open(self, node_id: int, election: ElectionState | None = None, log: bytes = b"") -> None:
        """Begin an incarnation of a node, with the content of its disk."""
        end = len(log) and end_of(log)
        disk, download = MemoryFileSystem(), None
        if node_id in self.parts:
            snapshot_id, content = self.parts[node_id]
            disk.write_bytes(file_path(Path("/"), snapshot_id, FileState.PART), content)
            download = PartialDownload(snapshot_id, len(content))
        stores = SimpleNamespace(
            log=SimpleNamespace(
                start=LOG_BEGINNING,
                end=OffsetAndEpoch(end, 0),
                read=lambda *_: log,
                digest_at=lambda offset: self.folds[offset],
            ),
            machine=SimpleNamespace(image=EMPTY_IMAGE),
            snapshots=SimpleNamespace(
                list=lambda: (),
                latest=lambda: None,
                path=lambda _: Path("/nowhere"),
                log_digest=self._digest_of,
                _fs=disk,
            ),
            directory=Path("/"),
            state=SimpleNamespace(
                log_start=LOG_BEGINNING, election=election or ElectionState(), download=download
            ),
            report=self.reports.get(node_id, SimpleNamespace(losses=[], corrupt_snapshots=[])),
        )
        node = SimpleNamespace(
            _core=_Changing(),
            epoch=0,
            high_watermark=0,
            log_end_offset=end,
            log_start=LOG_BEGINNING,
            is_leader=False,
            role_name="Follower",
            voters=tuple(Voter(key_of(each)) for each in (1, 2, 3)),
            voters_offset=-1,
            removed_voters=(),
        )
        replica: Any = SimpleNamespace(
            key=key_of(node_id),
            stores=stores,
            node=node,
            config=SimpleNamespace(endpoints=endpoints_of(node_id)),
            driver=SimpleNamespace(addresses=SimpleNamespace(leader=(NO_NODE, ()))),
            controller=SimpleNamespace(
                image=EMPTY_IMAGE, subscribe=self.subscribers.append, fault=None
            ),
        )
        self.replicas[node_id] = replica
        self.run_observer.opened(replica, lambda: self.now_ms)

    def _digest_of(self, snapshot_id: OffsetAndEpoch) -> bytes:
        return self.folds.get(snapshot_id.offset, b"")

    def write(self, node_id: int, effect: Effect, *, durable: bool = True) -> None:
        """Submit an effect to a node's disk, and by default complete it."""
        self._ticket += 1
        group = WriteGroup(self._ticket, (effect,))
        self.run_observer.submitted(node_id, group)
        self.replicas[node_id].node.log_end_offset = self.run_observer.nodes[
            node_id
        ].written.end_offset
        if durable:
            self.run_observer.persisted(node_id, [group])

    def append(self, node_id: int, offset: int, epoch: int, value: bytes = b"v", **kw: Any) -> None:
        """One record at ``offset``."""
        durable = kw.pop("durable", True)
        data = batch_of(offset, epoch, value, **kw)
        self.append_batch(node_id, data, epoch, durable=durable)

    def append_batch(
        self, node_id: int, data: bytes, epoch: int, *, durable: bool = True, folds: bool = True
    ) -> None:
        """Append a whole batch. With ``folds`` the log's digest is updated."""
        (batch,) = self.run_observer.split(data)
        if folds:
            self.folds[batch.end_offset] = fold(self.folds.get(batch.base_offset, b""), data)
        log = self.replicas[node_id].stores.log
        log.end = OffsetAndEpoch(batch.end_offset, epoch)
        effect = Append(batch.base_offset, batch.end_offset, epoch, data)
        self.write(node_id, effect, durable=durable)

    def commit_records(self, *records: MetadataRecord, base: int = 0) -> None:
        """Write one batch of metadata on every node; one node reports it as committed."""
        values = [encode_record(record) for record in records]
        self.commit_batch(encode_batch(values, base_offset=base, epoch=1, timestamp=0))

    def commit_voters(self, record: Voters, base: int = 0) -> None:
        """Do the same with a voters record."""
        self.commit_batch(encode_control_batch([record], base_offset=base, epoch=1, timestamp=0))

    def commit_batch(self, data: bytes) -> None:
        """Do the same with a given batch."""
        (batch,) = self.run_observer.split(data)
        for node_id in (1, 2, 3):
            self.append_batch(node_id, data, 1)
        self.commit(1, end_offset=batch.end_offset, epoch=1)

    def step(self, node_id: int, **state: Any) -> None:
        """Set the node's fields, and run the invariants on it."""
        for name, value in state.items():
            setattr(self.replicas[node_id].node, name, value)
        self.run_observer.stepped(node_id)

    def commit(self, *node_ids: int, end_offset: int, epoch: int) -> None:
        """Tell the nodes, one after the other, that everything below is committed."""
        for node_id in node_ids:
            self.step(node_id, high_watermark=end_offset, epoch=epoch)


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id]) * 16)


def batch_of(offset: int, epoch: int, value: bytes = b"v", **kw: Any) -> bytes:
    record = FeatureLevelRecord(name=value.decode())
    place = {"base_offset": offset, "epoch": epoch, "timestamp": 0, **kw}
    return encode_batch([encode_record(record)], **place)


def end_of(log: bytes) -> int:
    return Splitting().split(log)[-1].end_offset
