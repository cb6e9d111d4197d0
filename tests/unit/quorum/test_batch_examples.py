"""The worked examples of the on-disk format, byte for byte in both directions.

The hex was computed with an independent encoder and checked with two independent parsers.
"""

from __future__ import annotations

import pytest

from quorum.batch import encode_batch, iterate_records, record_values, scan_batches
from quorum.control import (
    SnapshotFooter,
    SnapshotHeader,
    decode_control,
    encode_control_batch,
)
from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.types import Endpoint, ReplicaKey, Voter

TIMESTAMP = 1_700_000_000_000

LEADER_CHANGE = bytes.fromhex("""
00 00 00 00 00 00 00 00 00 00 00 5e 00 00 00 01
02 17 35 ab 2b 00 20 00 00 00 00 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 68 00 ff ff ff ff ff
ff ff ff ff ff ff ff ff ff 00 00 00 01 58 00 00
00 08 00 00 00 02 44 00 00 00 00 00 01 04 00 00
00 01 00 00 00 00 02 00 00 00 00 03 00 03 00 00
00 01 00 00 00 00 02 00 00 00
""")
DATA = bytes.fromhex("""
00 00 00 00 00 00 00 01 00 00 00 79 00 00 00 01
02 86 ba b7 e3 00 00 00 00 00 02 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 68 00 ff ff ff ff ff
ff ff ff ff ff ff ff ff ff 00 00 00 03 3a 00 00
00 01 2e 01 0c 00 11 6d 65 74 61 64 61 74 61 2e
76 65 72 73 69 6f 6e 00 19 00 00 3c 00 00 02 01
30 01 02 00 04 66 6f 6f 10 11 12 13 14 15 16 17
18 19 1a 1b 1c 1d 1e 1f 00 00 14 00 00 04 01 08
01 14 00 00 00
""")
SNAPSHOT_HEAD = bytes.fromhex("""
00 00 00 00 00 00 00 00 00 00 00 9a 00 00 00 03
02 da 01 50 39 00 20 00 00 00 02 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 68 00 ff ff ff ff ff
ff ff ff ff ff ff ff ff ff 00 00 00 03 2a 00 00
00 08 00 00 00 03 16 00 00 00 00 01 8b cf e5 68
00 00 00 1e 00 00 02 08 00 00 00 05 0a 00 00 00
01 00 00 82 01 00 00 04 08 00 00 00 06 6e 00 00
02 00 00 00 01 10 11 12 13 14 15 16 17 18 19 1a
1b 1c 1d 1e 1f 02 0b 43 4f 4e 54 52 4f 4c 4c 45
52 0a 6c 6f 63 61 6c 68 6f 73 74 23 85 00 00 00
00 01 00 00 00 00
""")
SNAPSHOT_END = bytes.fromhex("""
00 00 00 00 00 00 00 03 00 00 00 3f 00 00 00 03
02 8f 66 08 e6 00 20 00 00 00 00 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 68 00 ff ff ff ff ff
ff ff ff ff ff ff ff ff ff 00 00 00 01 1a 00 00
00 08 00 00 00 04 06 00 00 00 00
""")
DATA_VALUES = [
    b"\x01\x0c\x00\x11metadata.version\x00\x19\x00",
    b"\x01\x02\x00\x04foo" + bytes(range(0x10, 0x20)) + b"\x00",
    b"\x01\x14\x00\x00",
]
VOTER = Voter(
    ReplicaKey(1, bytes(range(0x10, 0x20))), (Endpoint("CONTROLLER", "localhost", 9093),), 0, 1
)
CONTROLS = [
    (LEADER_CHANGE, 0, 1, [LeaderChange(1, (1, 2, 3), (1, 2))]),
    (SNAPSHOT_HEAD, 0, 3, [SnapshotHeader(TIMESTAMP), KRaftVersion(1), Voters((VOTER,))]),
    (SNAPSHOT_END, 3, 3, [SnapshotFooter()]),
]


@pytest.mark.parametrize(("raw", "base_offset", "epoch", "records"), CONTROLS)
def test_control_example(raw: bytes, base_offset: int, epoch: int, records: list) -> None:
    assert raw == encode_control_batch(
        records, base_offset=base_offset, epoch=epoch, timestamp=TIMESTAMP
    )
    (header,) = scan_batches(raw)
    assert header.is_control
    assert (header.base_offset, header.end_offset) == (base_offset, base_offset + len(records))
    assert (header.epoch, header.producer_id, header.producer_epoch) == (epoch, -1, -1)
    assert (header.base_sequence, header.base_timestamp) == (-1, TIMESTAMP)
    assert [decode_control(record) for record in iterate_records(raw, header)] == records


def test_data_example() -> None:
    assert encode_batch(DATA_VALUES, base_offset=1, epoch=1, timestamp=TIMESTAMP) == DATA
    (header,) = scan_batches(DATA)
    assert (header.crc, header.attributes, header.record_count) == (0x86BAB7E3, 0, 3)
    assert (header.size, header.max_timestamp, header.codec) == (133, TIMESTAMP, 0)
    assert not header.is_control
    assert not header.is_transactional
    records = iterate_records(DATA, header)
    assert [record.offset for record in records] == [1, 2, 3]
    assert [record.value for record in records] == DATA_VALUES == record_values(DATA, header)
    assert all(record.key is None and not record.headers for record in records)
    assert {record.timestamp for record in records} == {TIMESTAMP}
