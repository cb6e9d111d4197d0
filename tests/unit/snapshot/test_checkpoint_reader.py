"""Reading and verifying checkpoints: complete ones come through, no damage does."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.batch import encode_batch, with_position
from quorum.control import SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.control_records import KRaftVersion, LeaderChange
from quorum.errors import SnapshotCorruptError, StorageError
from quorum.types import ReplicaKey, SnapshotId, Voter
from snapshot.format import CheckpointHead, checkpoint_batches
from snapshot.naming import file_name
from snapshot.reader import CheckpointReader
from snapshot.verifier import CheckpointVerifier
from tests.support.checkpoint_digest import digest_of_headers
from tests.support.recording_filesystem import RecordingFileSystem

ID = SnapshotId(50, 3)
HEAD = CheckpointHead(777, b"L" * 16, 1, (Voter(ReplicaKey(1, b"d" * 16)),), ((9, b"t"),))
PARTS = [
    batch
    for batch, _ in checkpoint_batches(
        ID, HEAD, [bytes([n % 255 + 1]) * 3000 for n in range(200)], b"S" * 16
    )
]
WHOLE = b"".join(PARTS)
READ_HEAD = replace(HEAD, end=ID)


def header(*more, epoch: int = 3) -> bytes:
    return encode_control_batch([SnapshotHeader(1), *more], base_offset=0, epoch=epoch, timestamp=1)


def footer(base_offset: int, *, epoch: int = 3) -> bytes:
    return encode_control_batch(
        [SnapshotFooter()], base_offset=base_offset, epoch=epoch, timestamp=1
    )


def data(base_offset: int, *, epoch: int = 3) -> bytes:
    return encode_batch([b"v"], base_offset=base_offset, epoch=epoch, timestamp=1)


def test_bytes_and_files_read_alike(directory: Path, fs: RecordingFileSystem) -> None:
    path = directory / file_name(ID)
    path.write_bytes(WHOLE)
    for reader in (CheckpointReader(WHOLE), CheckpointReader(path), CheckpointReader(path, fs=fs)):
        assert list(reader.batches()) == PARTS
        assert reader.header() == SnapshotHeader(777, b"L" * 16, ((9, b"t"),), ID)
        assert reader.voters() == HEAD.voters
        summary = reader.verify()
        assert summary.head == READ_HEAD
        assert summary.footer == SnapshotFooter(b"S" * 16)
        assert (summary.records, summary.size_bytes) == (200, len(WHOLE))
        assert summary.digest == digest_of_headers(WHOLE)
    assert fs.open_files == 0


def test_a_reader_given_up_half_way_leaves_no_file_open(
    directory: Path, fs: RecordingFileSystem
) -> None:
    path = directory / file_name(ID)
    path.write_bytes(WHOLE)
    batches = CheckpointReader(path, fs=fs).batches()
    next(batches)
    batches.close()
    assert fs.open_files == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, len(WHOLE)), max_size=12))
def test_check_result_does_not_depend_on_how_the_bytes_are_cut(cuts: list[int]) -> None:
    verifier = CheckpointVerifier(snapshot_id=ID)
    found = []
    edges = [0, *sorted(cuts), len(WHOLE)]
    for start, end in pairwise(edges):
        for buffer, batch in verifier.feed(WHOLE[start:end]):
            found.append(bytes(buffer[batch.position : batch.end_position]))
    assert found == PARTS
    assert verifier.finish() == CheckpointReader(WHOLE).verify()


def test_byte_by_byte() -> None:
    small = header() + data(1) + footer(2)
    verifier = CheckpointVerifier(snapshot_id=ID)
    for index in range(len(small)):
        verifier.feed(small[index : index + 1])
        assert verifier.received_bytes == index + 1
    assert verifier.finish().records == 1


def test_every_flipped_bit_is_found() -> None:
    small = header() + data(1) + footer(2)
    for bit in range(len(small) * 8):
        damaged = bytearray(small)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SnapshotCorruptError):
            CheckpointReader(bytes(damaged), snapshot_id=ID).verify()


def test_every_truncation_is_found() -> None:
    small = header() + data(1) + footer(2)
    for size in range(len(small)):
        with pytest.raises(SnapshotCorruptError):
            CheckpointReader(small[:size], snapshot_id=ID).verify()


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "empty"),
        (data(0), "not a snapshot header"),
        (footer(0), "not a snapshot header"),
        (
            encode_control_batch([LeaderChange(1, (), ())], base_offset=0, epoch=3, timestamp=1),
            "not a snapshot header",
        ),
        (
            encode_batch(
                [b"\x00\x01\x00"], control_keys=[b"\0\0\0\x03"], base_offset=0, epoch=3, timestamp=1
            ),
            "unknown version 1",
        ),
        (header() + data(1), "without a footer"),
        (header() + footer(1) + data(2), "position 158: a batch behind the footer"),
        (header() + footer(1) + b"\x00", "cut off after 1 bytes"),
        (header() + with_position(header(), 1, 3), "second snapshot header"),
        (header() + data(2) + footer(3), "base offset 2 where 1"),
        (with_position(header(), 5, 3) + footer(6), "base offset 5 where 0"),
        (header() + data(1, epoch=4) + footer(2), "epoch 4"),
        (header(epoch=2) + footer(1, epoch=2), "epoch 2"),
        (
            header()
            + encode_control_batch(
                [SnapshotFooter(), KRaftVersion(1)], base_offset=1, epoch=3, timestamp=1
            ),
            "record behind the footer",
        ),
        (bytes(100), "magic"),
    ],
)
def test_wrong_structure(content: bytes, cause: str, directory: Path) -> None:
    path = directory / file_name(ID)
    path.write_bytes(content)
    reader = CheckpointReader(path)
    with pytest.raises(SnapshotCorruptError) as caught:
        reader.verify()
    assert cause in str(caught.value)
    assert str(path) in str(caught.value)
    assert "position" in str(caught.value)
    with pytest.raises(SnapshotCorruptError):
        list(reader.batches())


def test_header_only_and_unknown_control_records_are_accepted() -> None:
    unknown = encode_batch(
        [b"?"], base_offset=1, epoch=3, timestamp=1, control_keys=[b"\0\0\0\x63"]
    )
    assert CheckpointReader(header() + unknown + footer(2)).verify().records == 0
    assert CheckpointReader(header() + footer(1)).verify().records == 0


def test_head_needs_only_the_first_batch() -> None:
    reader = CheckpointReader(PARTS[0] + b"garbage")
    assert reader.head() == READ_HEAD
    with pytest.raises(SnapshotCorruptError, match="no complete first batch"):
        CheckpointReader(PARTS[0][:-1]).head()


def test_the_head_is_read_without_what_follows() -> None:
    beginning = PARTS[0]
    damaged = beginning + bytes(len(PARTS[1])) + b"".join(PARTS[2:])
    assert CheckpointReader(damaged).head() == READ_HEAD
    with pytest.raises(SnapshotCorruptError):
        CheckpointReader(damaged).verify()
    for position in range(len(beginning)):
        bad = bytearray(beginning)
        bad[position] ^= 1
        try:
            assert CheckpointReader(bytes(bad)).head() == READ_HEAD
        except SnapshotCorruptError:
            continue
        # Neither the base offset nor the epoch of a batch is under its checksum.
        assert position < 16, position


def test_a_missing_file_is_a_storage_error(directory: Path) -> None:
    with pytest.raises(StorageError, match="cannot open"):
        CheckpointReader(directory / file_name(ID)).verify()


@settings(max_examples=200)
@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=3))
def test_no_bytes_raise_anything_else(content: bytes, cuts: list[int]) -> None:
    verifier = CheckpointVerifier()
    edges = [0, *sorted(cuts), 400]
    raw = PARTS[0] + content
    try:
        for start, end in pairwise(edges):
            verifier.feed(raw[start:end])
        verifier.finish()
    except SnapshotCorruptError:
        return
    raise AssertionError("no footer was there")


def test_a_checkpoint_under_another_name_is_refused(directory: Path) -> None:
    """Goal: no records are skipped. Method: copies under a later, an earlier and a newer name."""
    for other in (SnapshotId(51, 3), SnapshotId(49, 3), SnapshotId(50, 4)):
        path = directory / file_name(other)
        path.write_bytes(WHOLE)
        for read in (CheckpointReader(path).verify, CheckpointReader(path).head):
            with pytest.raises(SnapshotCorruptError):
                read()
        verifier = CheckpointVerifier(snapshot_id=other)
        with pytest.raises(SnapshotCorruptError):
            verifier.feed(WHOLE)
    with pytest.raises(SnapshotCorruptError, match="this is checkpoint 50/3, under the name of 51"):
        CheckpointReader(WHOLE, snapshot_id=SnapshotId(51, 3)).verify()


def test_a_header_without_its_position_is_read() -> None:
    """Kafka's checkpoints and those of earlier releases have no position."""
    whole = header() + data(1) + footer(2)
    assert CheckpointReader(whole, snapshot_id=SnapshotId(7, 3)).verify().head.end is None
