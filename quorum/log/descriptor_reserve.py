"""File descriptors that are kept back for the files of the log.

Each connection has a descriptor. If connections take all of them, no file can be opened, and a node
that cannot write its vote has to stop. A file of the log is then opened with a descriptor of the
reserve, which gets it back when a file is closed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE})
DESCRIPTORS = 8
"""More than the files that are opened at the same time: a side file and its directory by the log
writer, a checkpoint, and log, index and digest of a new segment."""


class DescriptorReserve:
    """A number of descriptors, taken at once. Its methods may be called from any thread.

    An accepted connection may take a released descriptor first: the reserve then releases another.
    """

    def __init__(self, size: int = DESCRIPTORS) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._source = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._spare = [os.dup(self._source) for _ in range(size)]

    @property
    def spare_count(self) -> int:
        """Descriptors that it has at present."""
        return len(self._spare)

    def run(self, action: Callable[[], Result]) -> Result:
        """Return what ``action`` returns; repeat it while it lacks a descriptor and one is left.

        Raises:
            OSError: Raised by ``action``, for another reason or with no descriptor left.
        """
        while True:
            try:
                return action()
            except OSError as error:
                if error.errno not in _SHORTAGE or not self._release_one():
                    raise

    def close(self, descriptor: int) -> None:
        """Close ``descriptor``, which must be open, or keep it if the reserve is not full.

        Raises:
            OSError: It could not be closed or kept.
        """
        if len(self._spare) < self._size:
            with self._lock:
                if len(self._spare) < self._size:
                    # In one step, so that no connection takes it in between.
                    os.dup2(self._source, descriptor, inheritable=False)
                    self._spare.append(descriptor)
                    return
        os.close(descriptor)

    def refill(self) -> None:
        """Take what is missing, after an action that has closed its descriptor itself."""
        if len(self._spare) < self._size:
            with self._lock, contextlib.suppress(OSError):
                while len(self._spare) < self._size:
                    self._spare.append(os.dup(self._source))

    def _release_one(self) -> bool:
        with self._lock:
            if not self._spare:
                return False
            os.close(self._spare.pop())
            return True
