"""Waiting for a processor is seen, and only that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.run_queue import RunQueue

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="not counted here"),
]

SPINNING = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_a_crowd_on_one_processor_waits_for_it() -> None:
    """Method: three processes that need 0.3 s each, all on the same processor."""
    processor = min(os.sched_getaffinity(0))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SPINNING],
            preexec_fn=lambda: os.sched_setaffinity(0, {processor}),
        )
        for _ in range(3)
    ]
    began = time.monotonic()
    with RunQueue(lambda: [each.pid for each in running if each.poll() is None]) as queue:
        for each in running:
            assert each.wait() == 0
    ended = time.monotonic()
    # The last one has waited for the others by then.
    assert queue.waited(began, ended) > 0.3
    assert queue.waited(ended + 1, ended + 2) == 0.0
