"""Byte-for-byte examples of docs/reference/, written by the real writers from small values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorum.batch import HEADER_BYTES, encode_batch
from quorum.batch_header import HEADER
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.log.digest_file import write_digest_file
from quorum.log.election_store import ElectionFile
from quorum.log.epoch_file import encode_epochs
from quorum.log.high_watermark_file import _SLOT, Watermarks, _encode
from quorum.log.identity import MetaProperties, write_identity, write_partition_metadata
from quorum.log.index import IndexEntry, OffsetIndex
from quorum.log.log_start_file import LogStart, LogStartFile
from quorum.types import ElectionState, EpochStart, OffsetAndEpoch, ReplicaKey, SnapshotId
from simulation.memory_filesystem import MemoryFileSystem
from snapshot.format import CheckpointHead, checkpoint_batches
from snapshot.naming import file_name
from statemachine.codec import encode_kafka, encode_record
from statemachine.dump import StateDigest
from statemachine.records import FeatureLevelRecord
from tests.support.doc_regions import code, dump

DIRECTORY = Path("/data")
DIRECTORY_ID = bytes(range(0x10, 0x20))
RECORD = FeatureLevelRecord(name="group.version", feature_level=1)
TIMESTAMP = 1_700_000_000_000


def example_batch() -> bytes:
    """One command's batch: a record in the native codec, with two audit headers."""
    return encode_batch(
        [encode_record(RECORD)],
        base_offset=7,
        epoch=3,
        timestamp=TIMESTAMP,
        producer_id=1000,
        producer_epoch=0,
        base_sequence=5,
        headers=(("principal", b"User:ann"), ("reason", b"try it")),
    )


def _header_parts(batch: bytes) -> list[tuple[bytes, str]]:
    (
        base,
        length,
        epoch,
        magic,
        crc,
        attributes,
        delta,
        stamp,
        _,
        producer,
        producer_epoch,
        sequence,
        count,
    ) = HEADER.unpack_from(batch)
    return [
        (batch[0:8], f"base offset {base}"),
        (batch[8:12], f"length: {length} bytes follow"),
        (batch[12:16], f"leader epoch {epoch}"),
        (batch[16:17], f"magic {magic}"),
        (batch[17:21], f"CRC-32C {crc:#010x}"),
        (batch[21:23], f"attributes {attributes:#04x}"),
        (batch[23:27], f"last offset delta {delta}"),
        (batch[27:35], f"base timestamp {stamp}"),
        (batch[35:43], "max timestamp"),
        (batch[43:51], f"producer id {producer}"),
        (batch[51:53], f"producer epoch {producer_epoch}"),
        (batch[53:57], f"base sequence {sequence}"),
        (batch[57:61], f"record count {count}"),
    ]


def _cut(data: bytes, pieces: list[tuple[bytes, str]]) -> list[tuple[bytes, str]]:
    """Return the parts; together they must be ``data``, in order."""
    assert b"".join(piece for piece, _ in pieces) == data, (data, pieces)
    return pieces


def batch_example() -> str:
    batch = example_batch()
    value = encode_record(RECORD)
    body = batch[HEADER_BYTES:]
    # A number below 64 takes one byte, because zigzag encoding doubles it.
    pieces = [
        (bytes([2 * (len(body) - 1)]) if len(body) < 65 else body[:2], "record length"),
        (b"\0", "record attributes"),
        (b"\0", "timestamp delta 0"),
        (b"\0", "offset delta 0"),
        (b"\1", "key: null"),
        (bytes([2 * len(value)]), f"value: {len(value)} bytes"),
        (value, "the record"),
        (b"\4", "2 headers"),
    ]
    for name, content in ((b"principal", b"User:ann"), (b"reason", b"try it")):
        pieces.append((bytes([2 * len(name)]) + name, f"name {name.decode()!r}"))
        pieces.append((bytes([2 * len(content)]) + content, f"value {content.decode()!r}"))
    return dump(_header_parts(batch) + _cut(body, pieces))


def native_record_example() -> str:
    value = encode_record(RECORD)
    return dump(
        _cut(
            value,
            [
                (b"\x94", "array of 4"),
                (bytes([RECORD.API_KEY]), f"api key {RECORD.API_KEY}"),
                (b"\0", "version 0"),
                (bytes([0xA0 | len(RECORD.name)]) + RECORD.name.encode(), "name"),
                (b"\1", "feature_level 1"),
            ],
        )
    )


def kafka_record_example() -> str:
    return dump(
        _cut(
            encode_kafka(RECORD),
            [
                (b"\1", "frame version 1"),
                (bytes([RECORD.API_KEY]), f"api key {RECORD.API_KEY}"),
                (b"\0", "version 0"),
                (bytes([len(RECORD.name) + 1]) + RECORD.name.encode(), "name, length plus one"),
                (b"\0\1", "feature_level 1"),
                (b"\0", "no tagged fields"),
            ],
        )
    )


def control_batch_example() -> str:
    batch = encode_control_batch(
        [LeaderChange(1, (1, 2, 3), (1, 2))], base_offset=0, epoch=1, timestamp=TIMESTAMP
    )
    nodes = {n: n.to_bytes(4, "big") + b"\0" for n in (1, 2, 3)}
    body = batch[HEADER_BYTES:]
    pieces = [
        (bytes([2 * (len(body) - 1)]), "record length"),
        (b"\0\0\0", "attributes, timestamp and offset delta"),
        (b"\x08", "key: 4 bytes"),
        (b"\0\0\0\2", "key version 0, type 2: leader change"),
        (bytes([2 * (len(body) - 11)]), "value length"),
        (b"\0\0", "value version 0"),
        (b"\0\0\0\1", "leader 1"),
        (b"\4", "3 voters, plus one"),
        *((nodes[n], f"voter {n}, no tagged fields") for n in (1, 2, 3)),
        (b"\3", "2 granting, plus one"),
        *((nodes[n], f"voter {n}, no tagged fields") for n in (1, 2)),
        (b"\0", "no tagged fields"),
        (b"\0", "no record headers"),
    ]
    return dump(_header_parts(batch) + _cut(body, pieces))


def side_files_example() -> str:
    fs = MemoryFileSystem()
    fs.make_directory(DIRECTORY)
    me = ReplicaKey(1, DIRECTORY_ID)
    write_identity(fs, DIRECTORY, MetaProperties("SmetGfI-R9eSYgJw9gXMlw", 1, DIRECTORY_ID))
    ElectionFile(fs, DIRECTORY).save(ElectionState(3, 1, me, OffsetAndEpoch(40, 2)))
    LogStartFile(fs, DIRECTORY).save(LogStart(OffsetAndEpoch(40, 2)))
    write_digest_file(fs, DIRECTORY, 40, fold(EMPTY_LOG_DIGEST, example_batch()))
    write_partition_metadata(fs, DIRECTORY)
    shown = []
    for path in sorted(fs.list_directory(DIRECTORY)):
        file = fs.open(DIRECTORY / path)
        text = file.read_at(0, file.size()).decode()
        file.close()
        shown.append(f"{path}\n" + "".join(f"    {line}\n" for line in text.splitlines()))
    epochs = encode_epochs((EpochStart(1, 0), EpochStart(3, 7))).decode()
    shown.append("leader-epoch-checkpoint\n" + "".join(f"    {e}\n" for e in epochs.splitlines()))
    return code("\n".join(shown), "text")


def index_example() -> str:
    index = OffsetIndex(40)
    index.add(IndexEntry(49, 4120, b""))
    index.add(IndexEntry(63, 8260, b""))
    data = index.encode()
    return dump(
        [
            (data[0:4], "last offset 49, relative to base 40"),
            (data[4:8], "position 4120"),
            (data[8:12], "last offset 63"),
            (data[12:16], "position 8260"),
        ]
    )


def watermark_example() -> str:
    slot = _encode(2, Watermarks(8, 8, 3, fold(EMPTY_LOG_DIGEST, example_batch())), DIRECTORY_ID)
    return dump(
        [
            (slot[0:4], "magic"),
            (slot[4:12], "sequence 2"),
            (slot[12:20], "high watermark 8"),
            (slot[20:28], "durable end 8"),
            (slot[28:32], "durable epoch 3"),
            (slot[32:33], "digest known"),
            (slot[33:49], "digest"),
            (slot[49:65], "owner"),
            (slot[_SLOT.size :], "CRC-32C"),
        ]
    )


def digest_example() -> str:
    first = fold(EMPTY_LOG_DIGEST, example_batch())
    return code(
        f"below offset 0   {EMPTY_LOG_DIGEST.hex()}\nbehind the batch {first.hex()}", "text"
    )


def checkpoint_example() -> str:
    """Batch sizes and first bytes of a small checkpoint."""
    snapshot_id = SnapshotId(8, 3)
    head = CheckpointHead(TIMESTAMP, fold(EMPTY_LOG_DIGEST, example_batch()), 0)
    lines = [file_name(snapshot_id)]
    position = 0
    state = StateDigest()
    state.update(encode_record(RECORD))
    for batch, records in checkpoint_batches(
        snapshot_id, head, [encode_record(RECORD)], state.value()
    ):
        kind = "control" if HEADER.unpack_from(batch)[5] else f"{records} record"
        lines.append(
            f"    {position:4}  {len(batch):3} bytes  {kind:8}  {batch[61:].hex()[:48]}..."
        )
        position += len(batch)
    return code("\n".join(lines), "text")


MAKERS: dict[str, Callable[[], str]] = {
    "batch-example": batch_example,
    "native-record-example": native_record_example,
    "kafka-record-example": kafka_record_example,
    "control-batch-example": control_batch_example,
    "side-files-example": side_files_example,
    "index-example": index_example,
    "watermark-example": watermark_example,
    "digest-example": digest_example,
    "checkpoint-example": checkpoint_example,
}
