"""Read a checkpoint with every byte verified: header first, footer last, no batch behind it.

This module reads a whole file or buffer as verified batches. ``store`` serves chunks of a file to
other replicas and does not parse batches.

It works on a plain path with the standard library alone, so that tools and Spark executors can
use it; a store passes its own file system.

See: KIP-630, docs/reference/formats.md#checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Protocol

from quorum.batch import PEEK_BYTES, peek_size
from quorum.control import SnapshotHeader
from quorum.errors import SnapshotCorruptError, StorageError
from quorum.ports import FileSystem
from quorum.types import SnapshotId, Voter
from snapshot.format import CheckpointHead
from snapshot.naming import parse_name
from snapshot.verifier import CheckpointSummary, CheckpointVerifier

READ_BYTES = 1 << 20
"""Bytes of a file that are read at once."""


class _Source(Protocol):
    def read_at(self, position: int, size: int) -> bytes: ...
    def close(self) -> None: ...


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]

    def close(self) -> None:
        pass


class _PlainFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise StorageError(f"cannot open: {error.strerror}", path) from error

    def read_at(self, position: int, size: int) -> bytes:
        try:
            return os.pread(self._descriptor, size, position)
        except OSError as error:
            raise StorageError(f"cannot read: {error.strerror}", self._path) from error

    def close(self) -> None:
        os.close(self._descriptor)


class CheckpointReader:
    """One checkpoint; each call reads it from its beginning and leaves no file open.

    Every method raises ``SnapshotCorruptError`` for invalid content and ``StorageError`` if the
    file cannot be opened or read.
    """

    def __init__(
        self,
        source: Path | bytes,
        *,
        fs: FileSystem | None = None,
        snapshot_id: SnapshotId | None = None,
        on_verified: Callable[[CheckpointSummary], None] | None = None,
    ) -> None:
        """Read ``source``, by ``fs`` if given.

        ``snapshot_id`` defaults to the one in the path's name. If it is known, every batch must
        have its epoch, and a header that names its checkpoint must name this one.
        ``on_verified`` is called whenever a pass has read the whole file and found it intact.
        """
        self._source = source
        self._fs = fs
        self._on_verified = on_verified
        if snapshot_id is None and isinstance(source, Path):
            parsed = parse_name(source.name)
            snapshot_id = parsed[0] if parsed else None
        self.snapshot_id = snapshot_id

    def _open(self) -> _Source:
        if isinstance(self._source, bytes):
            return _Bytes(self._source)
        return _PlainFile(self._source) if self._fs is None else self._fs.open(self._source)

    def _verifier(self) -> CheckpointVerifier:
        path = None if isinstance(self._source, bytes) else self._source
        return CheckpointVerifier(snapshot_id=self.snapshot_id, path=path)

    def _pass(self, verifier: CheckpointVerifier) -> Generator[bytes, None, None]:
        source = self._open()
        try:
            while chunk := source.read_at(verifier.received_bytes, READ_BYTES):
                for data, header in verifier.feed(chunk):
                    yield bytes(data[header.position : header.end_position])
        finally:
            source.close()

    def batches(self) -> Iterator[bytes]:
        """Yield every batch in order, control batches included, after verifying it.

        Only the end of the iteration proves the file complete. If it raises, the consumer must
        discard what it built.

        Raises:
            SnapshotCorruptError: At the first invalid byte, or at the end if there is no
                footer.
        """
        verifier = self._verifier()
        yield from self._pass(verifier)
        summary = verifier.finish()
        if self._on_verified is not None:
            self._on_verified(summary)

    def verify(self) -> CheckpointSummary:
        """Read the whole file and return its summary.

        Raises:
            SnapshotCorruptError: It is damaged or incomplete.
        """
        verifier = self._verifier()
        for _ in self._pass(verifier):
            pass
        summary = verifier.finish()
        if self._on_verified is not None:
            self._on_verified(summary)
        return summary

    def head(self) -> CheckpointHead:
        """Return the content of the first batch; reads no further than needed.

        Raises:
            SnapshotCorruptError: The first batch is damaged or not a snapshot header.
        """
        verifier = self._verifier()
        source = self._open()
        try:
            front = source.read_at(0, PEEK_BYTES)
            verifier.feed(front)
            size = peek_size(front)
            if size is not None:
                verifier.feed(source.read_at(len(front), size - len(front)))
        finally:
            source.close()
        if verifier.head is None:
            raise SnapshotCorruptError(
                "corrupt checkpoint at position 0: no complete first batch", self._source_name()
            )
        return verifier.head

    def _source_name(self) -> Path | None:
        return None if isinstance(self._source, bytes) else self._source

    def header(self) -> SnapshotHeader:
        """Return the header record; see ``head``."""
        head = self.head()
        return SnapshotHeader(
            head.last_contained_log_timestamp, head.log_digest, head.tagged, head.end
        )

    def voters(self) -> tuple[Voter, ...]:
        """Return the voters in the checkpoint, none below kraft.version 1; see ``head``."""
        return self.head().voters
