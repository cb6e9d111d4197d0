"""The repair of a quorum that has reached the last epoch: its output, changes and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.cli.main import main
from quorum.log.directory_lock import DirectoryLock
from quorum.log.election_store import ElectionFile
from quorum.log.filesystem import OsFileSystem
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks
from quorum.types import EPOCH_MAX, ElectionState, OffsetAndEpoch, ReplicaKey


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    folder = tmp_path / "d"
    arguments = ["--cluster-id", "c", "--node-id", "1", "--data-dir", str(folder), "--standalone"]
    assert main(["format", *arguments]) == 0
    return folder / "__cluster_metadata-0"


def run(partition: Path, *arguments: str) -> int:
    settings = ["--set", f"node.data_dir={partition.parent}"]
    return main(["unsafe-lower-epoch", *settings, *arguments, "-o", "json"])


def stored(partition: Path) -> ElectionState:
    return ElectionFile(OsFileSystem(), partition).load()


def exhaust(partition: Path, **changes: object) -> None:
    state = ElectionState(EPOCH_MAX, 2, ReplicaKey(2), **changes)  # type: ignore[arg-type]
    ElectionFile(OsFileSystem(), partition).save(state)


def test_it_shows_the_change_and_applies_it_only_on_confirmation(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Epoch, vote and leader go; the vote floor stays."""
    exhaust(partition, vote_floor=OffsetAndEpoch(7, 3))
    capsys.readouterr()
    assert run(partition) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["epoch"], shown["newest_epoch_of_records"]) == (EPOCH_MAX, 3)
    assert shown["is_changed"] is False
    assert stored(partition).epoch == EPOCH_MAX
    assert run(partition, "--to", "9") == 0
    assert json.loads(capsys.readouterr().out)["epoch"] == 9
    assert stored(partition) == ElectionState(9, vote_floor=OffsetAndEpoch(7, 3))


def test_an_epoch_that_has_records_is_refused(partition: Path) -> None:
    """Its leader may have committed them; also where only the durable mark knows of them."""
    exhaust(partition)
    file = HighWatermarkFile(OsFileSystem(), partition)
    file.store_durably(Watermarks(durable_epoch=5))
    file.close()
    assert run(partition, "--to", "5") == 6
    assert stored(partition).epoch == EPOCH_MAX
    assert run(partition, "--to", "6") == 0


def test_the_epoch_is_never_raised(partition: Path) -> None:
    assert run(partition, "--to", "9") == 2
    assert stored(partition).epoch == 0


def test_a_running_nodes_epoch_is_left_alone(partition: Path) -> None:
    exhaust(partition)
    with DirectoryLock(partition.parent):
        assert run(partition, "--to", "9") != 0
    assert stored(partition).epoch == EPOCH_MAX
