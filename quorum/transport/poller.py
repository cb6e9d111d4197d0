"""Which of gRPC's two I/O engines a process of ours uses. Import this before ``grpc``.

gRPC's event engine reads sockets on threads of its own and hands every completion to a polling
thread, which hands it to the event loop. The engine before it polls on the thread that waits: one
thread switch less for each message. A lone write passes six messages between sleeping
threads, so that is a fifth of its latency (docs/benchmarks-history.md).
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Final

VARIABLE: Final = "GRPC_EXPERIMENTS"
_WITHOUT_EVENT_ENGINE: Final = "-event_engine_client,-event_engine_listener"


def poll_on_waiting_thread(environ: MutableMapping[str, str] = os.environ) -> None:
    """Let gRPC poll on the thread that waits, unless the environment chooses otherwise.

    For a program's first lines, not for a library's: the choice is the whole process's, and its
    children inherit it. Has no effect in a process that has imported ``grpc`` already.
    ``GRPC_EXPERIMENTS`` set to anything, also to nothing, is left alone.
    """
    environ.setdefault(VARIABLE, _WITHOUT_EVENT_ENGINE)
