"""A folder of an object store, or of whatever else fsspec reaches, as a place for a backup.

Every driver raises errors of its own. What a person can act on is told apart: the store cannot be
reached, it refuses these credentials, or the bucket does not exist.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from quorate.backup.errors import (
    BackupDamagedError,
    BackupTargetError,
    TargetMissingError,
    TargetRefusedError,
    TargetUnreachableError,
)
from quorum.errors import StorageError

_READ_BYTES = 1 << 20
_BUCKET_PROTOCOLS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss"})
"""Stores that have no folders. There makedirs would create the bucket of a mistyped URL."""
_UNREACHABLE_ERRNOS = frozenset(
    {
        errno.EBUSY,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.EREMOTEIO,
        errno.ETIMEDOUT,
    }
)
"""EBUSY and EREMOTEIO are s3fs's words for "slow down" and for an internal error of the store."""
_UNREACHABLE_NAMES = frozenset(
    {
        "ClientConnectionError",
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "EndpointConnectionError",
        "HTTPClientError",
        "ReadTimeoutError",
        "ResponseStreamingError",
    }
)
"""Of botocore and aiohttp, which are below no class of Python's own."""
_REFUSED_NAMES = frozenset(
    {
        "CredentialRetrievalError",
        "NoAuthTokenError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "ProfileNotFound",
        "TokenRetrievalError",
    }
)


class FsspecStorage:
    """A folder that fsspec reaches, such as ``s3://bucket/quorate``."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise BackupTargetError(
                "fsspec is not installed; pip install 'quorate[backup]' brings it"
            ) from error
        try:
            fs, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise BackupTargetError(f"{url}: {error}") from error
        self._fs: Any = fs
        self._url = url.rstrip("/")
        protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
        self._has_buckets = not _BUCKET_PROTOCOLS.isdisjoint(protocols)

    def lock(self) -> AbstractContextManager[object]:
        """Do nothing: an object store has no locks."""
        return nullcontext()

    def names(self, folder: str) -> list[str]:
        """As ``Storage.names``.

        Raises:
            TargetMissingError: There is no such bucket.
        """
        with self._translated("list"):
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(self._path(folder), detail=False)
            except FileNotFoundError:
                self._check_bucket()
                return []
        return sorted(str(each).rstrip("/").rpartition("/")[2] for each in found)

    def read(self, name: str) -> Iterator[bytes]:
        """As ``Storage.read``."""
        # Some drivers open a file only when it is read first, or ask for each part of it anew.
        try:
            with self._translated(f"read {name}"):
                file = self._fs.open(self._path(name), "rb")
            with file:
                while True:
                    with self._translated(f"read {name}"):
                        data = file.read(_READ_BYTES)
                    if not data:
                        return
                    yield data
        except FileNotFoundError as error:
            raise BackupDamagedError(f"{self._url}/{name}: is missing") from error

    def write(self, name: str, content: Iterable[bytes]) -> None:
        """As ``Storage.write``; modes and durability are the store's own.

        An object store gets the whole file by one call: the name has all content or is not there.
        """
        path, data = self._path(name), b"".join(content)
        try:
            with self._translated(f"write {name}"):
                if not self._has_buckets:
                    self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
                self._fs.pipe_file(path, data)
        except FileNotFoundError as error:
            raise TargetMissingError(f"{self._url}: cannot write {name}: {error}") from error

    def remove(self, name: str) -> None:
        """As ``Storage.remove``."""
        try:
            with self._translated(f"remove {name}"):
                self._fs.rm_file(self._path(name))
        except FileNotFoundError:
            pass

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}" if name else self._root

    def _check_bucket(self) -> None:
        """Tell an empty folder from a missing bucket."""
        if not self._has_buckets:
            return
        bucket = self._root.strip("/").partition("/")[0]
        try:
            self._fs.ls(bucket, detail=False)
        except FileNotFoundError as error:
            raise TargetMissingError(f"{self._url}: there is no bucket {bucket!r}") from error
        except PermissionError:
            pass  # It exists: these credentials may list the folder, and not the whole bucket.

    @contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        """Turn what a driver raises into errors of ours; a missing file stays what it is.

        Raises:
            TargetRefusedError: The store knows no such credentials, or they may not do this.
            TargetUnreachableError: It does not answer, or asks to come back later.
            StorageError: Anything else.
        """
        try:
            yield
        except (FileNotFoundError, TargetMissingError):
            raise
        # Drivers raise what their libraries raise, and those share no class below Exception.
        except Exception as error:
            names = {each.__name__ for each in type(error).__mro__}
            text = f"{self._url}: cannot {action}: {str(error) or type(error).__name__}"
            if isinstance(error, PermissionError) or names & _REFUSED_NAMES:
                raise TargetRefusedError(text) from error
            is_unreachable = (
                isinstance(error, ConnectionError | TimeoutError)
                or bool(names & _UNREACHABLE_NAMES)
                or (isinstance(error, OSError) and error.errno in _UNREACHABLE_ERRNOS)
            )
            if is_unreachable:
                raise TargetUnreachableError(text) from error
            raise StorageError(f"cannot {action}: {error}", self._url) from error
