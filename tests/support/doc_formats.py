"""Tables of docs/reference/formats.md and batches.md, made from the code that handles the bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

from quorate.controller.origin_headers import command_headers
from quorate.controller.requests import RequestContext
from quorate.features import (
    INITIAL_LEVELS,
    KAFKA_INITIAL_LEVELS,
    KRAFT_VERSION,
    SUPPORTED_FEATURES,
)
from quorum import control, control_incarnation, control_origin
from quorum.batch_header import CODEC_MASK, CONTROL_BIT, HEADER, TRANSACTIONAL_BIT
from quorum.log import directory_lock, high_watermark_file, layout, side_file
from quorum.types import SnapshotId
from snapshot.format import DATA_BATCH_BYTES, DATA_BATCH_RECORDS
from snapshot.naming import FileState, file_name
from statemachine.feature_levels import RELEASES
from statemachine.imports import HEADER_SOURCE_NEXT, HEADER_SOURCE_OFFSET
from statemachine.producers import HEADER_FINGERPRINT
from statemachine.records import OWN_API_KEY_MIN, RECORD_TYPES, FieldSpec, RecordType
from statemachine.records_schema import ArrayOf, Kind, StructOf
from tests.support.doc_regions import table

_INTEGERS = {
    "b": "int8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "Q": "uint64",
    "B": "uint8",
}
_BATCH_FIELDS = (
    ("base offset", "of the first record; not under the CRC"),
    ("length", "bytes after this field; not under the CRC"),
    ("leader epoch", "in which the batch was appended; not under the CRC"),
    ("magic", "2"),
    ("CRC", "CRC-32C of everything from the attributes on"),
    ("attributes", "bits below"),
    ("last offset delta", "record count - 1"),
    ("base timestamp", "milliseconds since 1970, stamped by the leader; never falls along our log"),
    ("max timestamp", "equal to the base timestamp in what we write"),
    ("producer id", "-1: no producer"),
    ("producer epoch", "-1: no producer"),
    ("base sequence", "number of the command within its producer; -1: none"),
    ("record count", "at least 1"),
)


def struct_rows(layout_: struct.Struct, fields: tuple[tuple[str, str], ...]) -> list[list[object]]:
    """Position, type, name and meaning of each field of a packed structure."""
    codes: list[str] = []
    digits = ""
    for letter in layout_.format.lstrip(">"):
        if letter.isdigit():
            digits += letter
        elif letter == "s":
            codes.append(f"{digits}s")
            digits = ""
        else:
            codes.append(letter)
    assert len(codes) == len(fields), (codes, fields)
    rows: list[list[object]] = []
    position = 0
    for each, (name, meaning) in zip(codes, fields):
        kind = _INTEGERS.get(each) or f"{each[:-1]} bytes"
        rows.append([position, kind, name, meaning])
        position += struct.calcsize(">" + each)
    assert position == layout_.size
    return rows


def batch_header() -> str:
    return table(["At", "Type", "Field", "Meaning"], struct_rows(HEADER, _BATCH_FIELDS))


def batch_attributes() -> str:
    return table(
        ["Bits", "Meaning"],
        [
            [f"`0x{CODEC_MASK:02x}`", "compression: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd"],
            [f"`0x{TRANSACTIONAL_BIT:02x}`", "part of a producer's transaction"],
            [f"`0x{CONTROL_BIT:02x}`", "the records are control records"],
        ],
    )


_CONTROL_NOTES = {
    control.ABORT: "read only: end of an aborted transaction",
    control.COMMIT: "read only: end of a committed transaction",
    control.LEADER_CHANGE: "first record of every epoch: leader, voters, who granted",
    control.SNAPSHOT_HEADER: "first record of a checkpoint",
    control.SNAPSHOT_FOOTER: "last record of a checkpoint",
    control.KRAFT_VERSION: "finalised kraft.version",
    control.KRAFT_VOTERS: "the whole voter set from here on",
}


def control_records() -> str:
    names = {
        value: name
        for name, value in vars(control).items()
        if name.isupper() and not name.endswith("_TAG") and isinstance(value, int)
    }
    return table(
        ["Type", "Name", "Value versions read", "Content"],
        [
            [number, names[number], f"0 to {highest}" if highest else "0", _CONTROL_NOTES[number]]
            for number, (highest, _) in sorted(control._DECODERS.items())
        ],
    )


_TAG_NOTES = {
    "LOG_DIGEST_TAG": (
        "SNAPSHOT_HEADER",
        "16 bytes: running log digest at the checkpoint's end offset",
    ),
    "SNAPSHOT_END_TAG": (
        "SNAPSHOT_HEADER",
        "the checkpoint's end offset (int64) and epoch (int32), as in its name",
    ),
    "STATE_DIGEST_TAG": (
        "SNAPSHOT_FOOTER",
        "16 bytes: digest of the state that the checkpoint holds",
    ),
    "REMOVED_VOTERS_TAG": (
        "KRAFT_VOTERS",
        "tombstones of removed voters: compact array of id int32, directory id, tagged fields",
    ),
    "LOG_INCARNATION_TAG": (
        "KRAFT_VOTERS",
        "[incarnation of the log](../adr/0065-incarnations-of-the-log.md): number int32, id and "
        "previous id of 16 bytes, kept end offset int64 and epoch int32, SHA-256 of the report, "
        "tagged fields; missing for the first one",
    ),
    "INCARNATION_REPORT_TAG": (
        "LEADER_CHANGE",
        "report of the recovery or restore that began the incarnation: JSON in UTF-8",
    ),
    "ORIGIN_TAG": (
        "KRAFT_VOTERS, LEADER_CHANGE",
        "[who asked for the change, and why](../adr/0076-who-changed-the-quorum.md): compact "
        "strings principal and reason (empty: unknown), tagged fields; missing if nobody asked",
    ),
    "READMITTED_VOTERS_TAG": ("KRAFT_VOTERS", "whose tombstone this record lifts; the same form"),
}


def tagged_fields() -> str:
    tags = {
        name: value
        for module in (control, control_incarnation, control_origin)
        for name, value in vars(module).items()
        if name.endswith("_TAG")
    }
    assert tags.keys() == _TAG_NOTES.keys()
    return table(
        ["Tag", "In", "Content"],
        [[value, *_TAG_NOTES[name]] for name, value in sorted(tags.items(), key=lambda t: t[1])],
    )


def _kind_name(kind: Kind) -> str:
    if isinstance(kind, ArrayOf):
        return f"[{_kind_name(kind.element)}]"
    return kind.struct.__name__ if isinstance(kind, StructOf) else kind.name


def _field_text(spec: FieldSpec) -> str:
    notes = [f"v{spec.since}+"] if spec.since else []
    if spec.tag is not None:
        notes.append(f"tag {spec.tag}")
    optional = "?" if spec.nullable else ""
    return f"`{spec.name}` {_kind_name(spec.kind)}{optional}" + (
        f" ({', '.join(notes)})" if notes else ""
    )


def _record_rows(*, is_own: bool) -> list[list[object]]:
    return [
        [
            key,
            each.name,
            f"0-{each.version_max}" if each.version_max else "0",
            ", ".join(map(_field_text, each.fields)) or "none",
        ]
        for key, each in sorted(RECORD_TYPES.items())
        if (key >= OWN_API_KEY_MIN) is is_own
    ]


def kafka_record_types() -> str:
    return table(["Key", "Record", "Versions", "Fields in order"], _record_rows(is_own=False))


def own_record_types() -> str:
    return table(["Key", "Record", "Versions", "Fields in order"], _record_rows(is_own=True))


def _structs(record_type: RecordType) -> list[StructOf]:
    kinds = [
        spec.kind.element if isinstance(spec.kind, ArrayOf) else spec.kind
        for spec in record_type.fields
    ]
    return [kind for kind in kinds if isinstance(kind, StructOf)]


def record_structs() -> str:
    found = {
        each.struct.__name__: each for kind in RECORD_TYPES.values() for each in _structs(kind)
    }
    return table(
        ["Structure", "Fields in order"],
        [[name, ", ".join(map(_field_text, each.fields))] for name, each in sorted(found.items())],
    )


_HEADER_NOTES = {
    "principal": "the authenticated principal, or the name that the client gave, marked as such",
    "client-id": "the client's own name",
    "request-id": "the request within that client; of a named writer it is kept with its answer",
    "reason": "the reason that the requester gave",
    "traceparent": "W3C trace context",
    "open": "the oldest sequence whose answer the producer still lacked, in decimal",
    "answer": "msgpack map: the fields of the answer beside its position; `refused` (code and "
    "message) in a batch that only records the number of a repeated command",
    HEADER_FINGERPRINT: "BLAKE2b-128 of the command's type and content, by which a repeat is known",
    HEADER_SOURCE_OFFSET: "import: where the batch's range of the source begins",
    HEADER_SOURCE_NEXT: "import: where that range ends, exclusive",
}


def record_headers() -> str:
    context = RequestContext(
        principal="p", client_id="c", request_id="r", reason="w", traceparent="t", producer_id=1
    )
    names = [name for name, _ in command_headers(context, {"a": 1}, b"")]
    names += [HEADER_SOURCE_OFFSET, HEADER_SOURCE_NEXT]
    assert set(names) == set(_HEADER_NOTES)
    return table(["Header", "Content"], [[f"`{name}`", _HEADER_NOTES[name]] for name in names])


def _file_rows() -> list[list[str]]:
    base = "<20-digit base offset>"
    checkpoint = file_name(SnapshotId(0, 0))
    shape = checkpoint.replace("0" * 20, "<20-digit end offset>").replace("0" * 10, "<epoch>")
    own_check = "none; derived again from the batches"
    return [
        [layout.META_PROPERTIES_NAME, "data directory", "identity", "CRC-32C in a comment"],
        [directory_lock.LOCK_NAME, "data directory", "held by the running process", "no content"],
        [layout.QUORUM_STATE_NAME, "partition", "epoch, leader, vote, vote floor", "line 2"],
        [base + layout.SEGMENT_SUFFIX, "partition", "record batches", "CRC-32C per batch"],
        [
            base + layout.INDEX_SUFFIX,
            "partition",
            "sparse index of a closed segment",
            "none; never trusted",
        ],
        [base + layout.DIGEST_SUFFIX, "partition", "log digest at the segment's base", "line 2"],
        [layout.EPOCH_FILE_NAME, "partition", "epoch history", own_check],
        [layout.LOG_START_NAME, "partition", "first offset kept", "line 2"],
        [layout.WATERMARK_NAME, "partition", "high watermark and durable end", "CRC-32C per slot"],
        [layout.WATERMARK_COPY_NAME, "partition", "a copy of `high-watermark`", "CRC-32C per slot"],
        [
            layout.QUARANTINED_NAME,
            "partition",
            "the offset from which the next start sets the log aside",
            "line 2",
        ],
        [layout.PARTITION_METADATA_NAME, "partition", "the metadata topic's id", "none"],
        [shape, "partition", "checkpoint", "CRC-32C per batch, footer"],
    ]


def files() -> str:
    return table(
        ["Name", "Lies in", "Content", "Checksum"],
        [[f"`{name}`", *rest] for name, *rest in _file_rows()],
    )


def file_endings() -> str:
    return table(
        ["Ending", "Meaning"],
        [
            [f"`{side_file.TEMPORARY_SUFFIX}`", "a side file being replaced; removed at start"],
            [
                f"`{layout.DELETED_SUFFIX}`",
                "a segment that Kafka was about to delete; removed at start",
            ],
            [f"`{layout.DAMAGED_SUFFIX}`", "a segment or side file set aside; never touched"],
            [
                f"`{FileState.PART.value}`",
                "a checkpoint being written (removed at start) or downloaded (resumed)",
            ],
            [f"`{FileState.DELETED.value}`", "a deleted checkpoint; removed at start"],
            [f"`{FileState.CORRUPT.value}`", "a checkpoint set aside; never touched"],
        ],
    )


def watermark_slot() -> str:
    fields = (
        ("magic", "`QHW2`"),
        ("sequence", "the slot with the higher one counts"),
        ("high watermark", "everything below is committed"),
        ("durable end", "everything below is on this disk"),
        ("durable epoch", "of the record before the durable end"),
        ("digest known", "1 if the digest in the next field is known"),
        ("digest", "log digest at the durable end"),
        ("owner", "directory id of the disk; another disk's slot does not count"),
    )
    rows = struct_rows(high_watermark_file._SLOT, fields)
    rows.append([high_watermark_file._SLOT.size, "uint32", "CRC-32C", "of the slot up to here"])
    return table(["At", "Type", "Field", "Meaning"], rows)


def checkpoint_cuts() -> str:
    return table(
        ["A data batch ends", "Value"],
        [
            ["before the value that would take its values past", f"{DATA_BATCH_BYTES} bytes"],
            ["when it holds", f"{DATA_BATCH_RECORDS} records"],
        ],
    )


def _initial_level(name: str) -> object:
    if name == KRAFT_VERSION:
        return "1 with voters given to `format`, else 0"
    if name in KAFKA_INITIAL_LEVELS:
        return f"{INITIAL_LEVELS[name]}, {KAFKA_INITIAL_LEVELS[name]} under Kafka's record codec"
    return INITIAL_LEVELS.get(name, 0)


def feature_levels() -> str:
    return table(
        ["Feature", "Lowest", "Highest", "New clusters start at", "Levels by Kafka's release"],
        [
            [
                f"`{each.name}`",
                each.min_level,
                each.max_level,
                _initial_level(each.name),
                _by_release(each.name),
            ]
            for each in SUPPORTED_FEATURES
        ],
    )


def _by_release(name: str) -> str:
    releases: dict[str, list[int]] = {}
    for level, release in sorted(RELEASES[name].items()):
        releases.setdefault(release, []).append(level)
    return ", ".join(
        f"{release}: {_span(levels[0], levels[-1])}" for release, levels in releases.items()
    )


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


MAKERS: dict[str, Callable[[], str]] = {
    "batch-header": batch_header,
    "batch-attributes": batch_attributes,
    "control-records": control_records,
    "tagged-fields": tagged_fields,
    "kafka-record-types": kafka_record_types,
    "own-record-types": own_record_types,
    "record-structs": record_structs,
    "record-headers": record_headers,
    "files": files,
    "file-endings": file_endings,
    "watermark-slot": watermark_slot,
    "checkpoint-cuts": checkpoint_cuts,
    "feature-levels": feature_levels,
}
