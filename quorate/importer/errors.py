"""The errors of an import."""

from __future__ import annotations

from quorum.errors import QuorateError, StorageError


class SourceDamagedError(StorageError):
    """A source with invalid bytes or records. Names file, position and cause."""

    def __init__(self, cause: str, *, path: object = None, position: int | None = None) -> None:
        super().__init__(cause if position is None else f"at position {position}: {cause}", path)


class ImportRefusedError(QuorateError):
    """An import that is refused although the source is intact; nothing was written."""


class ImportDiffersError(QuorateError):
    """Everything was copied, but the cluster's state differs from the source's."""

    def __init__(self, expected: bytes, found: bytes) -> None:
        super().__init__(
            f"the cluster's state digest is {found.hex()}, a replay of the source gives "
            f"{expected.hex()}"
        )
        self.expected = expected
        self.found = found
