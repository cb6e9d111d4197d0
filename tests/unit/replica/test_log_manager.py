"""The verification of a node's own log ends with the node, without a result."""

from __future__ import annotations

import pytest

from quorate.replica import paced_files
from quorum.core.contract.local_events import LocalEvent
from quorum.core.contract.output import VerifyLog
from quorum.log.config import LogConfig
from quorum.ports import File
from tests.support.lone_replica import LoneReplica
from tests.unit.replica.test_checkpoint_space import change


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_reading_under_way_ends_when_the_node_stops(
    monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    """Goal: a stop leaves no reader behind. Method: stop at its second chunk."""
    bench = LoneReplica(log=LogConfig(segment_bytes=20_000)).boot().lead()
    for n in range(20):
        assert bench.write(change(n, size=10_000))
    manager = bench.replica.log_manager
    pieces: list[int] = []
    events: list[LocalEvent] = []
    read = paced_files.PacedFiles.read

    def counted(files: paced_files.PacedFiles, file: File, position: int, size: int) -> bytes:
        pieces.append(size)
        if is_stopped and len(pieces) == 2:
            assert manager.stop() is None
        return read(files, file, position, size)

    monkeypatch.setattr(paced_files.PacedFiles, "read", counted)
    monkeypatch.setattr(manager, "_notify", events.append)
    end_offset = bench.stores.log.end.offset
    manager.verify(VerifyLog(end_offset, 0))
    last = manager.stop()
    assert last is not None
    assert last.done()
    assert not bench.failures
    if is_stopped:
        assert len(pieces) == 2
        assert not events
    else:
        assert len(pieces) > 5
        assert len(events) == 1
