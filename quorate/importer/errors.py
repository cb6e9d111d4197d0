"""What an import can end in besides success."""

from __future__ import annotations

from quorum.errors import QuorateError, StorageError


class SourceDamagedError(StorageError):
    """A source whose bytes or records are not what they must be. Names file, position, cause."""

    def __init__(self, cause: str, *, path: object = None, position: int | None = None) -> None:
        super().__init__(cause if position is None else f"at position {position}: {cause}", path)


class ImportRefusedError(QuorateError):
    """An import that cannot be done, for a reason that is no damage; nothing was written."""


class ImportDiffersError(QuorateError):
    """Everything was copied, and the cluster does not hold what the source says."""

    def __init__(self, expected: bytes, found: bytes) -> None:
        super().__init__(
            f"the cluster's state digest is {found.hex()}, a replay of the source gives "
            f"{expected.hex()}"
        )
        self.expected = expected
        self.found = found
