"""``ReplicaHost``: the environment of one replica, as one object.

The server implements it with threads and sockets, the simulator and the tests with simulated
ones. The replica between them is the same code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Protocol

from quorum.ports import FileSystem
from quorum.runtime.ports import Host, Listener
from snapshot.writer import CheckpointInfo


class ReplicaHost(Host, Protocol):
    """A ``Host`` with what the state machine and the checkpoints need besides.

    To be inherited; optional methods do nothing here.
    """

    fs: FileSystem
    rng: random.Random
    executor: Executor
    """Runs what blocks: writing a checkpoint, reading files again."""

    def to_driver(self, call: Callable[[], None]) -> None:
        """Make a call on the driver's thread, soon. Any thread."""

    def on_fault(self, message: str) -> None:
        """The controller cannot apply or activate something; ``message`` says what."""

    def on_checkpoint(self, info: CheckpointInfo) -> None:  # noqa: ARG002 - ignores it
        """A checkpoint was sealed, and the core knows it."""
        return

    def paced(self, values: Iterable[bytes]) -> Iterable[bytes]:
        """What the executor iterates in place of a checkpoint's ``values``."""
        return values

    def on_group(self, batches: int) -> None:  # noqa: ARG002 - ignores it
        """A group of this many batches was appended."""
        return

    def around_listener(self, listener: Listener) -> Listener:
        """What the driver calls in place of ``listener``, which is the controller."""
        return listener
