"""Checkpoint names: Kafka's form is written, both widths of epoch are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.errors import QuorumUsageError
from quorum.types import SnapshotId
from snapshot.naming import FileState, file_name, parse_name


def test_names_in_every_stage() -> None:
    snapshot_id = SnapshotId(4929, 7)
    stem = "00000000000000004929-0000000007"
    assert file_name(snapshot_id) == f"{stem}.checkpoint"
    assert file_name(snapshot_id, FileState.PART) == f"{stem}.checkpoint.part"
    assert file_name(snapshot_id, FileState.PART, label="own") == f"{stem}-own.checkpoint.part"
    assert file_name(snapshot_id, FileState.DELETED) == f"{stem}.checkpoint.deleted"
    assert file_name(snapshot_id, FileState.CORRUPT) == f"{stem}.checkpoint.corrupt"


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1), st.sampled_from(FileState))
def test_round_trip(offset: int, epoch: int, state: FileState) -> None:
    snapshot_id = SnapshotId(offset, epoch)
    assert parse_name(file_name(snapshot_id, state)) == (snapshot_id, state)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000005-00000000000000000002.checkpoint", FileState.SEALED),
        ("00000000000000000005-0000000002-8233423.checkpoint.part", FileState.PART),
        ("00000000000000000005-0000000002-own.checkpoint.part", FileState.PART),
        ("00000000000000000005-00000000000000000002.checkpoint.deleted", FileState.DELETED),
    ],
)
def test_foreign_forms_are_read(name: str, expected: FileState) -> None:
    assert parse_name(name) == (SnapshotId(5, 2), expected)


@pytest.mark.parametrize(
    "name",
    [
        "bootstrap.checkpoint",
        "00000000000000000005.log",
        "00000000000000000005-0000000002.checkpoint.tmp",
        "00000000000000000005-0000000002.checkpoint\n",
        "00000000000000000005-0000000002-own.checkpoint",
        "0000000000000000005-0000000002.checkpoint",
        "00000000000000000005-00000000002.checkpoint",
        "٠0000000000000000005-0000000002.checkpoint",
        "99999999999999999999-0000000002.checkpoint",
        "00000000000000000005-9999999999.checkpoint",
        "x00000000000000000005-0000000002.checkpoint",
    ],
)
def test_other_names_are_no_checkpoints(name: str) -> None:
    assert parse_name(name) is None


@pytest.mark.parametrize(
    "snapshot_id", [SnapshotId(-1, 0), SnapshotId(0, -1), SnapshotId(0, 2**31)]
)
def test_impossible_ids_name_nothing(snapshot_id: SnapshotId) -> None:
    with pytest.raises(QuorumUsageError):
        file_name(snapshot_id)
