"""Liveness and readiness of a server, with reasons."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from metrics.health import Check
from quorate.config.server_config import ServerConfig
from quorate.replica.replica import Replica


class HealthChecks:
    """Of one running replica. Owned by the event loop."""

    def __init__(self, replica: Replica, config: ServerConfig) -> None:
        self._replica = replica
        self._node = replica.node
        self._controller = replica.controller
        self._stores = replica.stores
        self._config = config

    def live_checks(self) -> tuple[Check, ...]:
        """Return whether this process should be restarted; independent of peers."""
        return (Check("event_loop", lambda: None),)

    def ready_checks(self, is_draining: Callable[[], bool]) -> tuple[Check, ...]:
        """Return whether clients should use this node."""
        return (
            Check("not_draining", lambda: "the node is shutting down" if is_draining() else None),
            Check("leader_known", self._leader_known),
            Check("votes", self._votes),
            Check("caught_up", self._caught_up),
            Check("replay", self._replay),
            Check("history", self._history),
            Check("disk_space", self._disk_space),
            Check("disk_writes", self._disk_writes),
        )

    def _leader_known(self) -> str | None:
        node = self._node
        if node.leader_id < 0:
            waits = f": {node.why_not_bootstrapped}" if node.why_not_bootstrapped else ""
            if self._controller.fault is not None:
                waits = "; where replay has stopped on every voter, as it has here, none will lead"
            if node.epoch > 0 and not node.is_voter:  # docs/operations/recover.md, Epoch-ahead
                waits = (
                    "; an observer follows no leader of an earlier epoch (recover.md, Epoch-ahead)"
                )
            return f"no leader is known in epoch {node.epoch} ({node.role_name.lower()}){waits}"
        if node.role_name == "Resigned":
            return f"led epoch {node.epoch} and resigned; no new leader is known yet"
        if node.leader_id == node.me.id and not (node.can_write or node.is_transferring):
            return f"leads epoch {node.epoch} but has not committed a record of it yet"
        if node.awaits_leader:
            return f"leader {node.leader_id} of epoch {node.epoch} does not answer fetches"
        return None

    def _votes(self) -> str | None:
        disqualified = self._node.disqualified
        return f"never votes with its directory id: {disqualified}" if disqualified else None

    def _caught_up(self) -> str | None:
        if self._node.is_downloading:
            return "a snapshot is being fetched, because the leader's log starts beyond this one"
        applied = self._controller.image.provenance.end_offset
        if applied == 0:
            return "nothing has been applied yet"
        lag = self._node.high_watermark - applied
        # A follower applies new commits together, and when the write of their records is done.
        if lag <= 0 or not self._replica.driver.has_delivery_left:
            return None
        return f"the image is {lag} records behind the high watermark"

    def _history(self) -> str | None:
        """A divergence says so here until it is settled, and for good when this log is wrong."""
        return self._node.chain.log_problem or None

    def _replay(self) -> str | None:
        fault = self._controller.fault
        return None if fault is None else f"replay has stopped, so it does not lead: {fault}"

    def _disk_writes(self) -> str | None:
        waited_ms = self._node.disk_stalled_ms
        return f"the disk has completed no write for {waited_ms} ms" if waited_ms else None

    def _disk_space(self) -> str | None:
        free = shutil.disk_usage(self._stores.directory).free
        least = self._config.limits.disk_free_bytes_min
        return None if free >= least else f"{free} bytes free, {least} wanted"
