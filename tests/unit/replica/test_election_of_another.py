"""An election state of another disk, or older than the log: the node does not start on it."""

from __future__ import annotations

import pytest

from quorum.errors import ElectionStateError
from quorum.log.election_store import ElectionFile
from quorum.log.layout import QUORUM_STATE_NAME, partition_directory
from quorum.types import ElectionState
from simulation.memory_filesystem import KEEP_ALL
from statemachine.commands import InitProducerId
from tests.support.lone_replica import DATA_DIR, LoneReplica

FOLDER = partition_directory(DATA_DIR)
PATH = FOLDER / QUORUM_STATE_NAME
OTHER = b"other disk's id."


def test_the_file_of_another_disk_is_refused_and_left_alone() -> None:
    """Goal: no foreign vote counts. Method: an intact file, written by a disk of another id."""
    bench = LoneReplica().boot().lead()
    bench.crash(KEEP_ALL)
    ElectionFile(bench.fs, FOLDER, OTHER).save(ElectionState(epoch=9))
    found = bench.fs.read_bytes(PATH)
    with pytest.raises(ElectionStateError, match="written by the disk"):
        bench.boot()
    assert bench.fs.read_bytes(PATH) == found


def test_a_file_without_an_owner_counts_as_the_nodes_own() -> None:
    """Goal: directories of earlier versions open. Method: save without an owner."""
    bench = LoneReplica().boot().lead()
    bench.crash(KEEP_ALL)
    state = bench.stores.election.load()
    ElectionFile(bench.fs, FOLDER).save(state)
    bench.boot()
    assert bench.stores.election.load().epoch >= state.epoch


def test_a_copy_from_before_the_last_epoch_is_refused() -> None:
    """Goal: a forgotten vote is noticed where the log shows it. Method: put the first file back."""
    bench = LoneReplica()
    first = bench.fs.read_bytes(PATH)
    bench.boot().lead()
    bench.write(InitProducerId())
    bench.crash(KEEP_ALL)
    bench.fs.write_bytes(PATH, first)
    with pytest.raises(ElectionStateError, match="older copy"):
        bench.boot()
    assert bench.fs.read_bytes(PATH) == first
