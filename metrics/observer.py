"""Convert core events and measured durations to counters and histograms.

Values that a scrape can read are gauges in ``metrics.collectors``. Time is an argument; every
collection is bounded.
"""

from __future__ import annotations

from collections import deque

from metrics.families import Families
from quorum.core.contract import events
from quorum.core.contract.outcomes import DownloadOutcome, TransferOutcome
from quorum.errors import ErrorCode

COMMITS_WAITING_MAX = 10_000
"""Bound of appends whose commit is timed; further appends are not timed."""

_NO_LEADER = -1


class Observer:
    """Updates metrics from the events of one replica. Owned by the driver's thread.

    Any thread may call the methods whose names end in ``_took``.
    """

    def __init__(self, families: Families) -> None:
        self._families = families
        self._appends: deque[tuple[int, float]] = deque()
        self._is_leader = False
        self._leader = (_NO_LEADER, 0)
        self._election_began: float | None = None

    def settle(self) -> None:
        """Apply the updates queued since the last call; a scrape does so as well."""
        self._families.settle()

    def on_event(self, event: events.Event, now: float) -> None:  # noqa: C901, PLR0912, PLR0915 - one table
        """Count one core event that happened at ``now`` (monotonic seconds)."""
        count = self._families.count
        match event:
            case events.RoleChanged():
                self._role_changed(event, now)
            case events.RecordsAppended():
                self._appended(event, now)
            case events.WatermarkMoved():
                self._committed(event.high_watermark, now)
            case events.VoteDecided():
                kind = "pre_vote" if event.pre_vote else "vote"
                decision = "granted" if event.granted else "rejected"
                count("quorate_raft_votes_total", kind, decision)
            case events.FetchClassified():
                count("quorate_raft_fetches_total", event.answer)
            case events.RequestRefused():
                count("quorate_raft_requests_refused_total", event.request, event.error.name)
            case events.MessageIgnored(is_violation=True):
                count("quorate_raft_protocol_violations_total", event.message)
            case events.MessageIgnored():
                count("quorate_raft_messages_ignored_total", event.message)
            case events.LogDiverged():
                count("quorate_raft_log_divergences_total")
            case events.TruncationRefused():
                count("quorate_raft_truncations_refused_total")
            case events.ReplicaRegressed():
                count("quorate_raft_replicas_regressed_total")
            case events.VoterDisqualified():
                count("quorate_raft_voter_disqualified_total")
            case events.LeaderLost():
                count("quorate_raft_leader_lost_total")
            case events.TransferEnded():
                gave_way = event.outcome is TransferOutcome.SUPERSEDED
                count("quorate_raft_transfers_total", "gave_way" if gave_way else "given_up")
            case events.VoterChangeEnded():
                result = "ok" if event.error == ErrorCode.NONE else event.error.name
                count("quorate_raft_voter_changes_total", event.change, result)
            case events.SelfRegistrationAsked():
                count("quorate_raft_self_registration_requests_total", event.change)
            case events.ProcessPaused():
                count("quorate_raft_process_pauses_total")
            case events.DiskStalled():
                count("quorate_raft_disk_stalls_total")
            case events.CheckpointFailed():
                self.snapshot_failed("generate")
            case events.ChunkReceived():
                count("quorate_snapshot_downloaded_bytes_total", by=event.chunk_bytes)
            case events.DownloadEnded():
                installed = event.outcome is DownloadOutcome.INSTALLED
                count("quorate_snapshot_downloads_total", "installed" if installed else "failed")
            case events.DigestDiffers():
                self.digest_compared(equal=False)
            case events.DigestNotComparable():
                self.digest_compared(equal=None)
            case events.DivergenceResolutionEnded():
                count("quorate_divergence_resolutions_total", event.outcome)
            case _:  # the rest shows in scraped gauges
                pass

    def sync_took(self, seconds: float, *, is_inline: bool = False) -> None:
        """Record one sync of the log, and whether the event loop's thread did it."""
        self._families.time("quorate_log_sync_seconds", seconds)
        if is_inline:
            self._families.count("quorate_log_inline_syncs_total")

    def apply_took(self, seconds: float) -> None:
        """Record that one committed range was applied to the image."""
        self._families.time("quorate_apply_seconds", seconds)

    def read_took(self, seconds: float) -> None:
        """Record that one linearizable read was confirmed."""
        self._families.time("quorate_raft_read_seconds", seconds)

    def group_appended(self, batches: int) -> None:
        """Record how many batches were proposed as one group."""
        self._families.time("quorate_raft_append_group_batches", batches)

    def snapshot_generation_took(self, seconds: float) -> None:
        """Record that one checkpoint of our own image was written and sealed."""
        self._families.time("quorate_snapshot_generate_seconds", seconds)

    def snapshot_load_took(self, seconds: float) -> None:
        """Record that one checkpoint was loaded as the image."""
        self._families.time("quorate_snapshot_load_seconds", seconds)

    def snapshot_failed(self, operation: str) -> None:
        """Count a failed ``operation``: ``generate`` or ``load``."""
        self._families.count("quorate_snapshot_failures_total", operation)

    def file_quarantined(self, kind: str) -> None:
        """Count a quarantined file: ``segment``, ``checkpoint`` or the name of a side file."""
        self._families.count("quorate_quarantines_total", kind)

    def file_repaired(self, kind: str) -> None:
        """Count a repaired file: ``index``, ``digest`` or the name of a side file."""
        self._families.count("quorate_repaired_files_total", kind)

    def digest_compared(self, *, equal: bool | None) -> None:
        """Count a digest comparison that failed, or was impossible (None). Equal is not counted."""
        if equal is None:
            self._families.count("quorate_digest_uncomparable_total")
        elif not equal:
            self._families.count("quorate_digest_mismatches_total")

    def access_denied(self, cause: str) -> None:
        """Count something a caller may not do, by ``cause``: ``role`` or ``acl``."""
        self._families.count("quorate_access_denied_total", cause)

    def authenticated(self, mechanism: str, outcome: str) -> None:
        """Count a client's exchange by outcome: ``accepted`` or ``refused``."""
        self._families.count("quorate_authentications_total", mechanism, outcome)

    def metadata_failed(self) -> None:
        """Count a committed record that could not be applied or published."""
        self._families.count("quorate_metadata_errors_total")

    def command_evaluated(self, command: str, result: str, *, by: int = 1) -> None:
        """Count client commands of type ``command`` by result: ``ok`` or an error's name."""
        self._families.count("quorate_commands_total", command, result, by=by)

    def rpc_started(self, service: str, method: str) -> None:
        """Count a call's start. The names must come from our service table, not from the wire."""
        self._families.count("quorate_rpc_started_total", service, method)

    def rpc_handled(
        self, service: str, method: str, code: str, *, seconds: float | None = None
    ) -> None:
        """Count a call's end with gRPC status ``code``; ``seconds`` for unary calls only."""
        self._families.count("quorate_rpc_handled_total", service, method, code)
        if seconds is not None:
            self._families.time("quorate_rpc_handling_seconds", seconds, service, method)

    def _role_changed(self, event: events.RoleChanged, now: float) -> None:
        role = event.role.lower()
        self._families.count("quorate_raft_role_changes_total", role)
        self._is_leader = role == "leader"
        if not self._is_leader:
            self._appends.clear()
        if event.leader_id != _NO_LEADER:
            if self._leader != (event.leader_id, event.epoch):
                self._families.count("quorate_raft_leader_changes_total")
            self._leader = (event.leader_id, event.epoch)
            if self._election_began is not None:
                seconds = now - self._election_began
                self._families.time("quorate_raft_election_seconds", seconds)
            self._election_began = None
        elif role in ("prospective", "candidate") and self._election_began is None:
            self._election_began = now

    def _appended(self, event: events.RecordsAppended, now: float) -> None:
        source = "leader" if self._is_leader else "fetch"
        records = max(0, event.end_offset - event.base_offset)
        self._families.count("quorate_raft_appended_records_total", source, by=records)
        if self._is_leader and len(self._appends) < COMMITS_WAITING_MAX:
            self._appends.append((event.end_offset, now))

    def _committed(self, high_watermark: int, now: float) -> None:
        while self._appends and self._appends[0][0] <= high_watermark:
            _, began = self._appends.popleft()
            self._families.time("quorate_raft_commit_seconds", now - began)
