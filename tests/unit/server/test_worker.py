"""The worker: jobs in order, what waits is cancelled, and a thread that hangs keeps no process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from quorate.server.worker import Worker, is_done_in


def test_jobs_run_in_order_on_one_thread() -> None:
    worker = Worker("work")
    names = [worker.submit(lambda: threading.current_thread().name) for _ in range(3)]
    failing = worker.submit(int, "x")
    assert [each.result(20) for each in names] == ["work"] * 3
    with pytest.raises(ValueError, match="x"):
        failing.result(20)
    worker.shutdown()


def test_what_waits_and_what_comes_later_is_cancelled() -> None:
    worker = Worker("work")
    begun, go = threading.Event(), threading.Event()

    def hold() -> bool:
        begun.set()
        return go.wait(20)

    held = worker.submit(hold)
    assert begun.wait(20)
    waiting = worker.submit(int, "1")
    worker.shutdown(wait=False, cancel_futures=True)
    assert waiting.cancelled()
    assert worker.submit(int, "1").cancelled()
    go.set()
    assert held.result(20)
    worker.shutdown(cancel_futures=True)


def test_what_waits_is_done_before_the_end_if_it_is_not_cancelled() -> None:
    worker = Worker("work")
    done = [worker.submit(int, "1"), worker.submit(int, "2")]
    worker.shutdown()
    assert [each.result(0) for each in done] == [1, 2]


def test_a_job_that_hangs_keeps_no_process() -> None:
    """Goal: the interpreter ends although the thread never does."""
    program = (
        "import threading\n"
        "from quorate.server.worker import Worker\n"
        "worker, begun = Worker('work'), threading.Event()\n"
        "worker.submit(lambda: (begun.set(), threading.Event().wait()))\n"
        "begun.wait()\n"
        "worker.shutdown(wait=False, cancel_futures=True)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("outcome", ["result", "error", "cancelled"])
def test_what_a_job_hands_to_the_loop_is_called_before_its_end_is_known(outcome: str) -> None:
    async def scenario() -> list[str]:
        loop = asyncio.get_running_loop()
        future: Future[int] = Future()
        called: list[str] = []
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(called.append, outcome))
        if outcome == "cancelled":
            future.cancel()
        elif outcome == "error":
            future.set_exception(ValueError(outcome))
        else:
            future.set_result(1)
        assert await is_done_in(20, future)
        return called

    assert asyncio.run(scenario()) == [outcome]


def test_a_hanging_job_is_abandoned_at_the_timeout() -> None:
    assert not asyncio.run(is_done_in(0.01, Future()))
