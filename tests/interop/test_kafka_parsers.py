"""Independent parsers of Kafka batches read what we write; we read what Kafka wrote.

kafka-python and aiokafka share no code with each other or with us.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.batch import encode_batch, iterate_records, record_values, scan_batches
from quorum.control import (
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    decode_control,
    encode_control_batch,
)
from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.types import Endpoint, ReplicaKey, SnapshotId, Voter
from snapshot import CheckpointHead, CheckpointReader, checkpoint_batches
from tests.support.compressed_batch import compressed
from tests.support.kafka_directory import whole_sample

with warnings.catch_warnings():
    # Importing the whole client of a foreign package is not ours to keep free of warnings.
    warnings.simplefilter("ignore", DeprecationWarning)
    from aiokafka.record import MemoryRecords as AiokafkaRecords
    from kafka.record import MemoryRecords as KafkaPythonRecords

pytestmark = pytest.mark.interop

KAFKA_LOG = Path(__file__).parent.parent / "data" / "kafka-kraft-log"
VOTERS = tuple(
    Voter(ReplicaKey(n, bytes([n]) * 16), (Endpoint("CONTROLLER", f"host{n}", 9090 + n),))
    for n in (1, 2, 3)
)

# What a parser found: per batch (base offset, checksum valid, is control), per record
# (offset, timestamp, key, value, headers).
Found = tuple[list[tuple[int, bool, bool]], list[tuple]]


def by_foreign(records_type: type, data: bytes) -> Found:
    records = records_type(data)
    batches = []
    found = []
    while records.has_next():
        batch = records.next_batch()
        batches.append((batch.base_offset, batch.validate_crc(), batch.is_control_batch))
        found += [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    return batches, found


def by_kafka_python(data: bytes) -> Found:
    return by_foreign(KafkaPythonRecords, data)


def by_aiokafka(data: bytes) -> Found:
    return by_foreign(AiokafkaRecords, data)


def by_us(data: bytes) -> Found:
    headers = scan_batches(data)
    batches = [(header.base_offset, True, header.is_control) for header in headers]
    found = [tuple(r) for header in headers for r in iterate_records(data, header)]
    return batches, found


def written_log(pack: Callable[[bytes], bytes] = bytes) -> bytes:
    """A segment as a leader writes it: control batches, data with and without headers."""
    out = io.BytesIO()
    out.write(
        encode_control_batch(
            [LeaderChange(1, (1, 2, 3), (1, 2)), KRaftVersion(1), Voters(VOTERS)],
            base_offset=0,
            epoch=1,
            timestamp=1_700_000_000_000,
        )
    )
    offset = 3
    for size in (1, 60, 63, 64, 5000, 70_000):
        values = [bytes([n + 1]) * size for n in range(3)]
        out.write(
            pack(
                encode_batch(
                    values,
                    base_offset=offset,
                    epoch=1,
                    timestamp=1_700_000_000_000 + size,
                    producer_id=4711,
                    producer_epoch=3,
                    base_sequence=offset,
                    headers=(("principal", b"User:ann"), ("reason", None), ("empty", b"")),
                )
            )
        )
        offset += 3
    out.write(
        pack(
            encode_batch(
                [b"%d" % n for n in range(300)],
                base_offset=offset,
                epoch=2,
                timestamp=1_700_000_100_000,
            )
        )
    )
    return out.getvalue()


@pytest.mark.parametrize("parse", [by_kafka_python, by_aiokafka])
@pytest.mark.parametrize("pack", [bytes, compressed], ids=["none", "zstd"])
def test_foreign_parsers_read_our_log(
    parse: Callable[[bytes], Found], pack: Callable[[bytes], bytes]
) -> None:
    data = written_log(pack)
    assert len(by_us(data)[1]) == 3 + 18 + 300
    assert parse(data) == by_us(data)


@pytest.mark.parametrize("parse", [by_kafka_python, by_aiokafka])
def test_foreign_parsers_read_our_checkpoint(parse: Callable[[bytes], Found]) -> None:
    head = CheckpointHead(1_700_000_000_000, b"d" * 16, 1, VOTERS)
    values = [b"%06d" % n * 20 for n in range(9000)]
    data = b"".join(
        batch for batch, _ in checkpoint_batches(SnapshotId(9500, 4), head, values, b"s" * 16)
    )
    batches, records = parse(data)
    assert (batches, records) == by_us(data)
    assert len(batches) >= 4
    assert [record[0] for record in records] == list(range(len(values) + 4))
    assert [record[3] for record in records[3:-1]] == values
    assert batches[0][2]
    assert batches[-1][2]


@pytest.mark.parametrize("parse", [by_kafka_python, by_aiokafka])
def test_foreign_parsers_notice_a_flipped_bit(parse: Callable[[bytes], Found]) -> None:
    """Goal: the comparison above can fail."""
    data = bytearray(written_log())
    data[60 + 150] ^= 1
    assert not all(valid for _, valid, _ in parse(bytes(data))[0])


@pytest.mark.parametrize("parse", [by_kafka_python, by_aiokafka])
def test_a_real_controllers_log(parse: Callable[[bytes], Found]) -> None:
    data = (KAFKA_LOG / "00000000000000000000.log").read_bytes()
    assert parse(data) == by_us(data)
    headers = scan_batches(data)
    assert len(headers) == 40
    assert headers[-1].end_offset == 43
    (first,) = iterate_records(data, headers[0])
    change = decode_control(first)
    assert isinstance(change, LeaderChange)
    assert change.leader_id in change.voters
    assert change.leader_id in change.granting
    for header in headers[1:]:
        values = record_values(data, header)
        assert values == [record.value for record in iterate_records(data, header)]
        assert all(value[0] == 1 for value in values)


@pytest.mark.parametrize("parse", [by_kafka_python, by_aiokafka])
def test_a_real_bootstrap_checkpoint(parse: Callable[[bytes], Found]) -> None:
    path = KAFKA_LOG / "bootstrap.checkpoint"
    data = path.read_bytes()
    assert parse(data) == by_us(data)
    summary = CheckpointReader(path).verify()
    assert (summary.records, summary.size_bytes) == (1, len(data))
    assert summary.head == CheckpointHead(0)


def test_our_encoder_reproduces_a_real_log_byte_for_byte() -> None:
    """Goal: nothing in Kafka's encoding is lost or chosen differently by ours."""
    data = (KAFKA_LOG / "00000000000000000000.log").read_bytes()
    data += (KAFKA_LOG / "bootstrap.checkpoint").read_bytes()
    position = 0
    while position < len(data):
        header = scan_batches(
            data[
                position : position + 12 + int.from_bytes(data[position + 8 : position + 12], "big")
            ]
        )[0]
        raw = data[position : position + header.size]
        records = iterate_records(raw, header)
        place = {
            "base_offset": header.base_offset,
            "epoch": header.epoch,
            "timestamp": header.base_timestamp,
        }
        if header.is_control:
            again = encode_control_batch(
                [written(decode_control(record)) for record in records], **place
            )
        else:
            again = encode_batch(record_values(raw, header), **place)
        # Within a batch the records of this log share one time.
        assert again == raw
        position += header.size


def written(record: object) -> LeaderChange | SnapshotHeader | SnapshotFooter:
    assert not isinstance(record, UnknownControl)
    assert isinstance(record, LeaderChange | SnapshotHeader | SnapshotFooter)
    return record


def test_a_whole_foreign_log_directory(tmp_path: Path) -> None:
    """Every segment and checkpoint of a real controller, by all three parsers."""
    directory = whole_sample(tmp_path)
    paths = sorted(directory.rglob("*.log")) + sorted(directory.rglob("*.checkpoint"))
    assert paths
    for path in paths:
        data = path.read_bytes()
        assert by_kafka_python(data) == by_us(data) == by_aiokafka(data), path
