"""What ``test_fork_server`` lets a forked process do; the first argument says what."""

from __future__ import annotations

import atexit
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from tests.support.fork_server import ForkedProcess


def describe() -> None:
    """What a process finds when it begins."""
    watched = (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT)
    handlers = [signal.getsignal(each) for each in watched]
    found = {
        "arguments": sys.argv[1:],
        "name": __name__,
        "environment": dict(os.environ),
        "is_session_leader": os.getsid(0) == os.getpid(),
        "signals": [getattr(each, "__name__", each) for each in handlers],
        "files": os.listdir("/proc/self/fd"),
        "input": sys.stdin.read(),
        "drawn": random.random(),
    }
    print(json.dumps(found))


def work(seconds: str) -> None:
    while time.process_time() < float(seconds):
        pass


def wait(note: str = "") -> None:
    if note:
        Path(note).write_text(str(os.getpid()))
    print("waiting", flush=True)
    while True:
        signal.pause()


def make() -> None:
    """Have another one made, which waits."""
    process = ForkedProcess(__spec__.name, ["wait"], files=(2, 2), environment={})
    print(process.pid, flush=True)
    wait()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    print(1 // 0)


if __name__ == "__main__":
    if sys.argv[1] != "describe":
        atexit.register(print, "at the end")
    known = {
        "describe": describe,
        "work": work,
        "wait": wait,
        "make": make,
        "die": die,
        "raise": fail,
        "exit": lambda code: sys.exit(int(code)),
        "leave": lambda: None,
    }
    known[sys.argv[1]](*([] if sys.argv[1] == "describe" else sys.argv[2:]))
