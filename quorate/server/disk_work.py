"""``end_disk_work``: the last part of a stop, when nobody asks the node anything any more."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from quorate.replica.replica import Replica
from quorate.server.worker import Worker, is_done_in
from quorum.runtime.shell import Shell

READERS_S = 1.0
"""So long a stop waits for threads that merely read; one that a hung disk holds is left behind."""


async def end_disk_work(
    shell: Shell | None,
    replica: Replica,
    worker: Worker,
    scrubbed: Future[None],
    *,
    limit_s: float,
) -> bool:
    """Let everything that uses the node's disk end; whether all that writes has.

    A checkpoint under way is given up, what was submitted to the writer is written; each is waited
    for ``limit_s`` seconds at most. The shell has been told of every failure when this returns,
    also of one that came after that time.

    Args:
        shell: None when it was not started.
        replica: Whose checkpoint and whose readings end.
        worker: Does all of these.
        scrubbed: Done when the scrubber, which was told to stop, has ended.
        limit_s: For a checkpoint, and for the writer.
    """
    readings = (scrubbed, replica.checkpoints.stop_reading(), replica.log_keeper.stop())
    last = replica.checkpoints.cancel()
    worker.shutdown(wait=False, cancel_futures=True)
    if last is not None:
        # While the replica can still hear how it ended.
        await is_done_in(limit_s, last)
    if shell is not None:
        shell.stop(limit_s)
    begun = (each for each in readings if each is not None)
    await asyncio.gather(*(is_done_in(READERS_S, each) for each in begun))
    # Of a checkpoint that failed after its time the replica did not hear.
    failure = replica.checkpoints.failure
    if failure is not None and shell is not None:
        shell.fail(failure)
    is_writing = shell is not None and shell.is_writing
    return not is_writing and (last is None or last.done())
