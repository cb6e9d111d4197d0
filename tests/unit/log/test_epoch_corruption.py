"""The epoch of a batch lies outside its checksum; ``quorum-state`` bounds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.batch import encode_batch
from quorum.errors import LogDamagedError
from quorum.log.recovery import open_log
from simulation.memory_filesystem import MemoryFileSystem

DIRECTORY = Path("/log")


def test_a_batch_of_an_epoch_never_reached_is_damaged() -> None:
    """Write a log that ends in epoch 3 and open it as a replica that knows epoch 2 only."""
    fs = MemoryFileSystem()
    log, _ = open_log(fs, DIRECTORY)
    first = encode_batch([b"a"], base_offset=0, epoch=2, timestamp=0)
    log.append(first, base_offset=0, end_offset=1)
    second = encode_batch([b"b"], base_offset=1, epoch=3, timestamp=0)
    log.append(second, base_offset=1, end_offset=2)
    log.close()

    open_log(fs, DIRECTORY, epoch_max=3)[0].close()
    with pytest.raises(LogDamagedError, match="epoch 3") as caught:
        open_log(fs, DIRECTORY, epoch_max=2)

    assert (caught.value.offset, caught.value.position) == (1, len(first))
