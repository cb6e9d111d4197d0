"""Choose which of gRPC's two I/O engines a process uses. Import this before ``grpc``.

gRPC's event engine reads sockets on its own threads and passes every completion to a polling
thread, which passes it to the event loop. The older engine polls on the waiting thread and saves
one thread switch per message. A lone write passes six messages between sleeping threads, so this
saves a fifth of its latency (docs/benchmarks-history.md).
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Final

VARIABLE: Final = "GRPC_EXPERIMENTS"
_WITHOUT_EVENT_ENGINE: Final = "-event_engine_client,-event_engine_listener"


def poll_on_waiting_thread(environ: MutableMapping[str, str] = os.environ) -> None:
    """Let gRPC poll on the waiting thread, unless the environment chooses otherwise.

    Call it in a program's first lines, not in a library: it affects the whole process and its
    children. It has no effect once the process has imported ``grpc``. An existing
    ``GRPC_EXPERIMENTS``, also an empty one, is not changed.
    """
    environ.setdefault(VARIABLE, _WITHOUT_EVENT_ENGINE)
