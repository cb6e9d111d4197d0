"""The first lines of every ``quorate`` process, before anything that takes time to load is loaded.

Loading the packages takes about a second. A node that is stopped meanwhile should end as one that
is stopped a second later, and an interrupted command should show no traceback.

Nothing is imported at the top but what costs nothing.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from quorate.early_stop import leave_when_asked
from quorate.error_stream import lose_what_cannot_be_written

VALUED = frozenset(
    {
        "-o",
        "--output",
        "--bootstrap",
        "--timeout",
        "--tls-ca",
        "--tls-cert",
        "--sasl-user",
        "--sasl-password-file",
        "--sasl-token-file",
        "--tls-key",
        "--context",
    }
)
"""Options before the command's name whose value is a word of its own."""
_INTERRUPTED = 130
_COLLECTION_THRESHOLDS = (50_000, 20, 50)
"""As ``gc.set_threshold``, while a command runs: what it loads and shows has few cycles, and Python
would search 40,000 objects again and again."""


def main() -> int:
    """Run the command that the process was called with; returns its exit code."""
    lose_what_cannot_be_written()
    is_server = command_of(sys.argv[1:]) == "server"
    if is_server:
        leave_when_asked()
    else:
        gc.set_threshold(*_COLLECTION_THRESHOLDS)
    # A command says in its own line what gRPC would write about beside it. In the log of a server
    # gRPC's lines have no fields and no limit, and any stranger's TLS handshake makes one.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from quorate.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        if not is_server:
            # The interpreter ends with several searches for cycles among all that was loaded.
            gc.freeze()


def command_of(arguments: Sequence[str]) -> str:
    """The first word that is neither an option nor an option's value; empty when there is none."""
    words = iter(arguments)
    for word in words:
        if not word.startswith("-"):
            return word
        if word in VALUED:
            next(words, None)
    return ""
