"""Open a node's directory, and classify a start that fails because the disk was made to fail."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from quorate.replica.boot import Stores, open_stores
from quorum.errors import ConfigError, DiskFullError, QuorateError, StorageError, UnknownRecordError
from quorum.types import NodeId
from simulation.clocks import DriftingClock
from simulation.damaged_files import DATA_DIR
from simulation.environment import Environment
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import PowerLost
from simulation.node_disk import NodeDisk
from simulation.older_release import decoder_without

RESTART_US = 50_000
"""Delay before a service manager restarts a process."""
_REPAIR_US = 100_000
"""Delay until an operator has restored a refused file."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A process ended before its replica ran."""

    why: str
    retry_us: int
    """Time until the next attempt, from now."""
    is_machine_up: bool = False
    """Whether only the process ended, so that its unsynced writes survive."""


def open_directory(
    cluster: Environment,
    node_id: NodeId,
    disk: NodeDisk,
    clock: DriftingClock,
    lacks: Collection[int] = (),
    *,
    uses_native_codec: bool,
) -> Stores | NotStarted:
    """Open the directory as a server does, in a release that ``lacks`` these record types.

    ``uses_native_codec`` is the configured codec, which may differ from the directory's.

    Raises:
        Violation: An intact directory did not open, or the node accepted or changed a corrupt file.
    """
    disk.opening()
    try:
        stores = open_stores(
            disk.fs,
            DATA_DIR,
            node_id=node_id,
            log_config=cluster.settings.log,
            snapshot_config=cluster.settings.snapshot,
            clock=clock,
            decode=decoder_without(lacks),
            uses_native_codec=uses_native_codec,
        )
    except PowerLost:
        return NotStarted("power", RESTART_US)
    except ConfigError as error:
        if uses_native_codec != cluster.settings.uses_native_codec:
            return NotStarted("asked for the other codec", _REPAIR_US, is_machine_up=True)
        raise Violation(
            "no-crash", "its own codec is refused", node=node_id, error=repr(error)
        ) from error
    except UnknownRecordError as error:
        if lacks:
            return NotStarted("its checkpoint is of a newer release", _REPAIR_US)
        raise Violation(
            "no-crash", "a record of its own is unknown", node=node_id, error=repr(error)
        ) from error
    except QuorateError as error:
        # The disk ended this start before its files were evaluated.
        is_evaluation = disk.files.may_refuse and type(error) not in (StorageError, DiskFullError)
        if disk.is_suspect and not is_evaluation:
            return NotStarted(f"disk failed: {type(error).__name__}", RESTART_US)
        if disk.files.may_refuse:
            cluster.counts.refused_starts += 1
            disk.files.put_back()
            return NotStarted(f"refused: {type(error).__name__}", _REPAIR_US, is_machine_up=True)
        raise Violation(
            "no-crash", "an intact directory did not open", node=node_id, error=repr(error)
        ) from error
    if disk.files.may_refuse:
        disk.files.accepted(stores.identity, stores.state.election)
    report = stores.report
    is_log_whole = not report.losses and report.recovery.finished_replacement is None
    disk.files.opened(report.repaired, is_log_whole=is_log_whole)
    return stores
