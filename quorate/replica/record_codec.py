"""Finds the record codec of a directory from its own records.

The codec decides the bytes of every checkpoint, and equal ids have to be equal bytes on all
replicas; so it is fixed when a directory is formatted. Nothing stores it a second time.

See: ADR 47.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from quorum.batch import record_values, scan_batches
from quorum.errors import ConfigError
from quorum.log.segmented_log import SegmentedLog
from quorum.types import SnapshotId
from snapshot.store import DirectorySnapshotStore
from statemachine.codec import is_kafka_value

_SCAN_BYTES = 1 << 20


def check_codec(directory: Path, value: bytes | None, *, uses_native_codec: bool | None) -> None:
    """Refuse a configuration that asks for another codec than ``value`` is in, a record of the
    directory. None for a record or a configuration that says nothing.

    Raises:
        ConfigError: They differ.
    """
    if value is None or uses_native_codec is None or is_kafka_value(value) != uses_native_codec:
        return
    asked, found = ("native", "kafka") if uses_native_codec else ("kafka", "native")
    raise ConfigError(
        [
            f"cluster.record_codec is {asked}, but the records in {directory} are in the {found} "
            f"codec; it is fixed when a directory is formatted, so set it to {found}"
        ]
    )


def value_of_checkpoints(
    snapshots: DirectorySnapshotStore, newest: SnapshotId | None, bootstrap: Sequence[bytes]
) -> bytes | None:
    """The first record of the newest intact checkpoint, else of the bootstrap checkpoint, if
    any.
    """
    if newest is not None:
        for data in snapshots.reader(newest).batches():
            for value in _values(data):
                return value
    return bootstrap[0] if bootstrap else None


def value_of_log(log: SegmentedLog) -> bytes | None:
    """The first record that is still in the log; None without any."""
    offset, end_offset = log.start.offset, log.end.offset
    while offset < end_offset:
        data = log.read(offset, _SCAN_BYTES)
        for value in _values(data):
            return value
        offset = scan_batches(data, verify_crc=False)[-1].end_offset
    return None


def _values(data: bytes) -> Iterator[bytes]:
    for header in scan_batches(data, verify_crc=False):
        if not header.is_control:
            yield from filter(None, record_values(data, header))
