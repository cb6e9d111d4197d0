"""A node that is stopped while it opens its directory ends at once, cleanly, with a message."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from tests.integration import slow_opening
from tests.integration.processes import running

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_node_is_stopped_while_it_opens_its_log(tmp_path: Path, number: int) -> None:
    """A signal to reload comes first: it has no effect yet, and does not end the process."""
    settings = {"node.filesystem": slow_opening.NAME}
    with running(tmp_path, voters=1, settings=settings, starts=False) as cluster:
        (node,) = cluster.voters
        cluster.start(node)
        cluster.until("the log", (node.folder / slow_opening.OPENING).exists)
        assert node.process is not None
        node.process.send_signal(signal.SIGHUP)
        node.process.send_signal(number)
        assert cluster.wait_ended(node) == Exit.OK
        assert node.log_tail() == "stopped before the node had started"

        # Nothing is left behind that a start would mind.
        cluster.settings.pop("node.filesystem")
        cluster.configure(node)
        cluster.start_all()
        assert cluster.stop(node) == Exit.OK
