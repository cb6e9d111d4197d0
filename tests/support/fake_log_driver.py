"""A replicated log that commits, flushes and changes leaders only when a test calls for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorate.controller.controller import Controller
from quorum.batch import BatchHeader, with_position
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.core.contract.output import LeadershipChanged
from quorum.core.voters.voter_set import NO_VOTERS, VoterSet
from quorum.runtime.proposals import checked_end
from quorum.types import NO_NODE, NodeId, VersionRange

ME: NodeId = 1
OTHER: NodeId = 2


class FakeLogDriver:
    """Implements ``quorate.controller.ports.LogDriver`` for one node without real peers."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.node = self.controls = self
        self.is_leader = False
        self.can_write = False
        self.epoch = 0
        self.leader_id = NO_NODE
        self.log_end_offset = 0
        self.high_watermark = 0
        self.flushed_end_offset = 0
        self.newest_stamp_ms = 0
        self.batches: list[tuple[int, int, bytes]] = []
        """Base offset, end offset and bytes of every batch in the log."""
        self.proposals: list[int] = []
        """Number of batches of each proposal."""
        self.tokens: list[int] = []
        """Read rounds without an outcome."""
        self.versions: dict[NodeId, Sequence[VersionRange] | None] = {}
        """Feature levels that each voter is said to support."""
        self._epoch_start = 0
        controller.attach(self)

    # ------------------------------------------------------------------ the port

    def propose(self, batches: Sequence[bytes], headers: Sequence[BatchHeader]) -> int:
        assert self.can_write
        self.proposals.append(len(batches))
        checked_end(batches, headers, self.log_end_offset, self.epoch)
        for batch, header in zip(batches, headers, strict=True):
            self._store(batch, header.record_count)
        return self.log_end_offset

    def voter_versions(self) -> Mapping[NodeId, Sequence[VersionRange] | None]:
        return self.versions

    def voter_set_at(self, end_offset: int) -> VoterSet:
        """Return a set of the first incarnation of the log: nobody recovers here."""
        del end_offset
        return NO_VOTERS

    def read(self, token: int) -> None:
        self.tokens.append(token)

    def ask_position(self, token: int) -> None:
        self.tokens.append(token)

    def resign(self) -> None:
        """Do nothing: the test decides which node leads."""

    # ------------------------------------------------------------------ for tests

    def elect(self, *, is_committed: bool = True) -> None:
        """This node becomes leader of a new epoch, with the epoch's control batch."""
        self.epoch += 1
        self.is_leader, self.leader_id = True, ME
        self._notify()
        self._epoch_start = self.log_end_offset
        self.append_control()
        if is_committed:
            self.flush_disk()
            self.commit()

    def append_control(self) -> None:
        """Append a batch that the quorum itself writes."""
        self._store(
            encode_control_batch(
                [LeaderChange(ME, (ME,), (ME,))],
                base_offset=self.log_end_offset,
                epoch=self.epoch,
                timestamp=1,
            ),
            1,
        )

    def append_foreign(self, batch: bytes, record_count: int) -> None:
        """Append another leader's batch."""
        self._store(with_position(batch, self.log_end_offset, self.epoch), record_count)

    def flush_disk(self) -> None:
        self.flushed_end_offset = self.log_end_offset

    def commit(self, end_offset: int | None = None) -> None:
        """Commit and deliver everything below ``end_offset`` (default: all)."""
        end_offset = self.log_end_offset if end_offset is None else end_offset
        if self.is_leader and not self.can_write and end_offset <= self._epoch_start:
            # Records of older epochs are committed together with this epoch's first record.
            return
        data = b"".join(
            batch
            for base, end, batch in self.batches
            if base >= self.high_watermark and end <= end_offset
        )
        delivered = max(
            (end for _, end, _ in self.batches if end <= end_offset), default=end_offset
        )
        assert delivered == end_offset, "commit at a batch boundary"
        self.high_watermark = end_offset
        if data:
            self.controller.on_committed(data, end_offset)
        if self.is_leader and not self.can_write:
            self.can_write = True
            self._notify()

    def settle(self) -> None:
        self.flush_disk()
        self.commit()

    def confirm_reads(self) -> None:
        tokens, self.tokens = self.tokens, []
        for token in tokens:
            self.controller.on_read_confirmed(token, self.high_watermark)

    def fail_reads(self) -> None:
        tokens, self.tokens = self.tokens, []
        for token in tokens:
            self.controller.on_read_failed(token)

    def depose(self, *, truncates: bool = True) -> None:
        """Let another node lead a newer epoch; uncommitted batches are cut, or stay."""
        self.epoch += 1
        self.is_leader = self.can_write = False
        self.leader_id = OTHER
        self._notify()
        if truncates:
            self.batches = [entry for entry in self.batches if entry[1] <= self.high_watermark]
            self.log_end_offset = self.flushed_end_offset = self.high_watermark
            self.controller.on_truncated(self.log_end_offset)

    def _store(self, batch: bytes, count: int) -> None:
        self.batches.append((self.log_end_offset, self.log_end_offset + count, batch))
        self.log_end_offset += count

    def _notify(self) -> None:
        self.controller.on_leadership(
            LeadershipChanged(self.leader_id, self.epoch, self.is_leader, self.can_write)
        )
