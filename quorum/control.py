"""Encode and decode control records: those of ``quorum.control_records`` and of checkpoints.

It defines keys, values and tagged fields of every control record type. The core and the snapshot
package decide when to write them.

Values are written at schema version 0. A leader change is also read at version 1, which adds
directory ids. Unknown tagged fields of the record and of each voter in it are kept in ``tagged``
and written back; those of the endpoint and of the version range inside a voter are skipped.

See: KIP-595 (leader change), KIP-630 (snapshot header and footer), KIP-853 (kraft.version and
voters), KIP-98 (markers), docs/reference/batches.md#control-records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from quorum.batch_decode import Record
from quorum.batch_encode import encode_batch
from quorum.control_incarnation import LOG_INCARNATION_TAG, decode_incarnation, encode_incarnation
from quorum.control_origin import ORIGIN_TAG, decode_origin, encode_origin
from quorum.control_records import ControlRecord, KRaftVersion, LeaderChange, Voters
from quorum.control_voters import (
    read_array,
    read_key,
    read_number,
    read_voter,
    write_array,
    write_key,
    write_voter,
)
from quorum.errors import CorruptBatchError, QuorumUsageError
from quorum.types import ReplicaKey, SnapshotId, TaggedFields
from quorum.values import value
from quorum.varint import encode_tagged_fields, read_tagged_fields

LOG_DIGEST_TAG = 20_001
"""Snapshot header: the running log digest at the checkpoint's end offset (ADR 5)."""
SNAPSHOT_END_TAG = 20_005
"""Snapshot header: the checkpoint's end offset (int64) and epoch (int32), as in its file name."""
STATE_DIGEST_TAG = 20_002
"""Snapshot footer: digest of the state in the checkpoint (ADR 6)."""
REMOVED_VOTERS_TAG = 20_003
"""Voters record: the tombstones, as a compact array of id, directory id and tagged fields."""
READMITTED_VOTERS_TAG = 20_004
"""Voters record: the replicas whose tombstones it lifts, in the same form."""

ABORT = 0
COMMIT = 1
LEADER_CHANGE = 2
SNAPSHOT_HEADER = 3
SNAPSHOT_FOOTER = 4
KRAFT_VERSION = 5
KRAFT_VOTERS = 6

_KEY = struct.Struct(">hh")
_END = struct.Struct(">qi")
_VOTER_SETS_MAX = 64
"""Cached voters records: every checkpoint, and every read of one, has the same few."""


@value
class SnapshotHeader:
    """First record of every checkpoint.

    ``last_contained_log_timestamp`` is the append time (milliseconds since 1970) of the last
    batch contained. ``digest`` is the running log digest at the end offset; empty if
    unknown. ``end`` is the checkpoint's own id; None in a file of Kafka or of an earlier release.
    """

    last_contained_log_timestamp: int
    digest: bytes = b""
    tagged: TaggedFields = ()
    end: SnapshotId | None = None


@value
class SnapshotFooter:
    """Last record of every checkpoint. ``state_digest`` is empty if unknown."""

    state_digest: bytes = b""
    tagged: TaggedFields = ()


@value
class AbortMarker:
    """End of an aborted transaction. Never written by us."""

    coordinator_epoch: int


@value
class CommitMarker:
    """End of a committed transaction. Never written by us."""

    coordinator_epoch: int


@value
class UnknownControl:
    """A control record of a type or schema version that this release does not know."""

    type: int
    version: int
    """Schema version in the value; -1 for an unknown type."""
    value: bytes


DecodedControl: TypeAlias = (
    ControlRecord | SnapshotHeader | SnapshotFooter | AbortMarker | CommitMarker | UnknownControl
)
WrittenControl: TypeAlias = ControlRecord | SnapshotHeader | SnapshotFooter


def _with_own(tagged: TaggedFields, *own: tuple[int, bytes]) -> bytes:
    """Encode the fields together with our own ones, without empty ones."""
    fields = dict(tagged) | {tag: field for tag, field in own if field}
    return encode_tagged_fields(tuple(sorted(fields.items())))


def _without_own(tagged: TaggedFields, *tags: int) -> tuple[list[bytes], TaggedFields]:
    """Return our own fields, empty if missing, and all others."""
    fields = dict(tagged)
    others = tuple(field for field in tagged if field[0] not in tags)
    return [fields.get(tag, b"") for tag in tags], others


def _with_keys(record: Voters) -> TaggedFields:
    fields = dict(record.tagged)
    for tag, keys in (
        (REMOVED_VOTERS_TAG, record.removed),
        (READMITTED_VOTERS_TAG, record.readmitted),
    ):
        if keys:
            fields[tag] = write_array(keys, write_key)
    incarnation = encode_incarnation(record.incarnation)
    if incarnation:
        fields[LOG_INCARNATION_TAG] = incarnation
    if record.origin is not None:
        fields[ORIGIN_TAG] = encode_origin(record.origin)
    return tuple(sorted(fields.items()))


def _keys_in(tagged: TaggedFields, tag: int) -> tuple[ReplicaKey, ...]:
    value = dict(tagged).get(tag)
    return () if value is None else read_array(value, 0, read_key)[0]


def _write_node(node_id: int) -> bytes:
    return struct.pack(">i", node_id) + encode_tagged_fields()


def _encode_value(record: WrittenControl) -> tuple[int, bytes]:
    """Return the control type and the value bytes of one record."""
    if isinstance(record, LeaderChange):
        return LEADER_CHANGE, b"".join(
            (
                struct.pack(">hi", 0, record.leader_id),
                write_array(record.voters, _write_node),
                write_array(record.granting, _write_node),
                _with_own(record.tagged, (ORIGIN_TAG, encode_origin(record.origin))),
            )
        )
    if isinstance(record, KRaftVersion):
        return KRAFT_VERSION, (
            struct.pack(">hh", 0, record.version) + encode_tagged_fields(record.tagged)
        )
    if isinstance(record, Voters):
        return KRAFT_VOTERS, b"".join(
            (
                b"\x00\x00",
                write_array(record.voters, write_voter),
                encode_tagged_fields(_with_keys(record)),
            )
        )
    if isinstance(record, SnapshotHeader):
        end = record.end
        return SNAPSHOT_HEADER, (
            struct.pack(">hq", 0, record.last_contained_log_timestamp)
            + _with_own(
                record.tagged,
                (LOG_DIGEST_TAG, record.digest),
                (
                    SNAPSHOT_END_TAG,
                    b"" if end is None else _END.pack(end.offset, end.epoch),
                ),
            )
        )
    return SNAPSHOT_FOOTER, (
        b"\x00\x00" + _with_own(record.tagged, (STATE_DIGEST_TAG, record.state_digest))
    )


def encode_control_batch(
    records: Sequence[WrittenControl], *, base_offset: int, epoch: int, timestamp: int
) -> bytes:
    """Return one control batch with ``records`` in order; producer id stays -1.

    Raises:
        QuorumUsageError: No records, or a value outside its field.
    """
    keys = []
    values = []
    try:
        for record in records:
            control_type, value = _encode_value(record)
            keys.append(_KEY.pack(0, control_type))
            values.append(value)
    except (struct.error, ValueError) as error:
        raise QuorumUsageError(f"cannot encode a control record: {error}") from error
    return encode_batch(
        values, base_offset=base_offset, epoch=epoch, timestamp=timestamp, control_keys=keys
    )


def _read_node(version: int) -> Callable[[bytes, int], tuple[int, int]]:
    directory_bytes = 16 if version else 0

    def read(value: bytes, position: int) -> tuple[int, int]:
        node_id, position = read_number(value, position, 4)
        _, position = read_tagged_fields(value, position + directory_bytes, len(value))
        return node_id, position

    return read


def _decode_leader_change(value: bytes, version: int) -> LeaderChange:
    leader_id, position = read_number(value, 2, 4)
    voters, position = read_array(value, position, _read_node(version))
    granting, position = read_array(value, position, _read_node(version))
    tagged, _ = read_tagged_fields(value, position, len(value))
    [origin], others = _without_own(tagged, ORIGIN_TAG)
    return LeaderChange(leader_id, voters, granting, others, decode_origin(origin))


def _decode_kraft_version(value: bytes, _version: int) -> KRaftVersion:
    version, position = read_number(value, 2, 2)
    tagged, _ = read_tagged_fields(value, position, len(value))
    return KRaftVersion(version, tagged)


@lru_cache(maxsize=_VOTER_SETS_MAX)
def _decode_voters(value: bytes, _version: int) -> Voters:
    voters, position = read_array(value, 2, read_voter)
    tagged, _ = read_tagged_fields(value, position, len(value))
    own = (REMOVED_VOTERS_TAG, READMITTED_VOTERS_TAG, LOG_INCARNATION_TAG, ORIGIN_TAG)
    return Voters(
        voters,
        tuple(field for field in tagged if field[0] not in own),
        _keys_in(tagged, REMOVED_VOTERS_TAG),
        _keys_in(tagged, READMITTED_VOTERS_TAG),
        decode_incarnation(dict(tagged).get(LOG_INCARNATION_TAG, b"")),
        decode_origin(dict(tagged).get(ORIGIN_TAG, b"")),
    )


def _decode_header(value: bytes, _version: int) -> SnapshotHeader:
    timestamp, position = read_number(value, 2, 8)
    tagged, _ = read_tagged_fields(value, position, len(value))
    (digest, end), others = _without_own(tagged, LOG_DIGEST_TAG, SNAPSHOT_END_TAG)
    if len(end) not in (0, _END.size):
        raise ValueError(f"an end offset and epoch of {len(end)} bytes")
    return SnapshotHeader(timestamp, digest, others, SnapshotId(*_END.unpack(end)) if end else None)


def _decode_footer(value: bytes, _version: int) -> SnapshotFooter:
    tagged, _ = read_tagged_fields(value, 2, len(value))
    (digest,), others = _without_own(tagged, STATE_DIGEST_TAG)
    return SnapshotFooter(digest, others)


def _decode_abort(value: bytes, _version: int) -> AbortMarker:
    return AbortMarker(read_number(value, 2, 4)[0])


def _decode_commit(value: bytes, _version: int) -> CommitMarker:
    return CommitMarker(read_number(value, 2, 4)[0])


_DECODERS: dict[int, tuple[int, Callable[[bytes, int], DecodedControl]]] = {
    ABORT: (0, _decode_abort),
    COMMIT: (0, _decode_commit),
    LEADER_CHANGE: (1, _decode_leader_change),
    SNAPSHOT_HEADER: (0, _decode_header),
    SNAPSHOT_FOOTER: (0, _decode_footer),
    KRAFT_VERSION: (0, _decode_kraft_version),
    KRAFT_VOTERS: (0, _decode_voters),
}
"""Highest schema version known, and decoder, by control type."""


def decode_control(record: Record, *, path: object = None, position: int = 0) -> DecodedControl:
    """Decode a record of a control batch.

    A longer key and a higher key version are read as version 0. Like Kafka's readers, it ignores
    bytes behind a value's last field. ``position`` is that of the batch, for errors.

    Raises:
        CorruptBatchError: A key or value that is missing, cut off or malformed.
    """
    key, value = record.key, record.value
    try:
        if key is None or len(key) < 4:
            raise ValueError("no control key")
        if value is None:
            raise ValueError("no value")
        key_version, control_type = _KEY.unpack_from(key)
        if key_version < 0:
            raise ValueError(f"key version {key_version}")
        known = _DECODERS.get(control_type)
        if known is None:
            return UnknownControl(control_type, -1, value)
        highest, decoder = known
        version = read_number(value, 0, 2)[0]
        if version < 0:
            raise ValueError(f"value version {version}")
        if version > highest:
            return UnknownControl(control_type, version, value)
        return decoder(value, version)
    except ValueError as error:
        raise CorruptBatchError(
            f"control record at offset {record.offset}: {error}", path=path, position=position
        ) from error
