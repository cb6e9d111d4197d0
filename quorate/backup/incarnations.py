"""The incarnation of the log in a backup: that of its newest voters record."""

from __future__ import annotations

from quorum.batch import BatchHeader, iterate_records
from quorum.control import decode_control
from quorum.control_records import Voters
from quorum.incarnation import LogIncarnation


def incarnation_after(before: LogIncarnation, data: bytes, header: BatchHeader) -> LogIncarnation:
    """Return the incarnation of a log that goes on with the batch ``header`` of ``data``.

    Raises:
        CorruptBatchError: A control record is malformed.
    """
    if header.is_control:
        for record in iterate_records(data, header):
            control = decode_control(record)
            if isinstance(control, Voters):
                before = control.incarnation
    return before
