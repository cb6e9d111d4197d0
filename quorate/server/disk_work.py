"""``end_disk_work``: the last part of a stop, when no request reaches the node any more."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from quorate.replica.replica import Replica
from quorate.server.worker import Worker, is_done_in
from quorum.runtime.shell import Shell

READERS_S = 1.0
"""Time that a stop waits for threads that only read; one that a hung disk blocks is left behind."""


async def end_disk_work(
    shell: Shell | None,
    replica: Replica,
    worker: Worker,
    scrubbed: Future[None],
    *,
    limit_s: float,
) -> bool:
    """End everything that uses the node's disk; return whether everything that writes has ended.

    A checkpoint under way is cancelled, what was submitted to the writer is written; each is waited
    for ``limit_s`` seconds at most. When this returns, the shell has the failure of
    whatever has ended, also if that was after its time; what has not ended and writes makes the
    answer False.

    Args:
        shell: None when it was not started.
        replica: Whose checkpoint and whose readings end.
        worker: Does all of these.
        scrubbed: Done when the stopping scrubber has ended; with its failure, if any.
        limit_s: For a checkpoint, and for the writer.
    """
    readings = (scrubbed, replica.checkpoints.stop_reading(), replica.log_manager.stop())
    last = replica.checkpoints.cancel()
    worker.shutdown(wait=False, cancel_futures=True)
    waits = [is_done_in(READERS_S, each) for each in readings if each is not None]
    if last is not None:
        waits.append(is_done_in(limit_s, last))
    # While the replica can still take their results.
    await asyncio.gather(*waits)
    if shell is None:
        return last is None or last.done()
    shell.stop(limit_s)
    # First what has ended, then of what: in the other order a failure in between would be lost.
    has_ended = not shell.is_writing and (last is None or last.done())
    # The writer thread's last report waits for a turn of the loop.
    await asyncio.sleep(0)
    failures = (
        replica.checkpoints.failure,
        replica.log_manager.failure,
        scrubbed.exception() if scrubbed.done() else None,
    )
    for failure in failures:
        if failure is not None:
            shell.on_failure(failure)
    return has_ended
