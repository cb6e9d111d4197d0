"""A copy of a cluster's metadata log, fetched through the client library into a data directory.

The audit trail reads files. A program that may not read those of a node, such as a Spark driver,
gets the committed records with FetchLog, as any client does, and writes them with the log's own
writer. Each call fetches only what is new.

Secrets are replaced by the node, so a batch with one has other bytes here, and the log digest is
that of the copy.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from audit.errors import AuditError, LogTruncatedError
from quorate.client.blocking import BlockingClient
from quorate.client.errors import (
    ClientError,
    LogTruncationError,
    OffsetOutOfRangeError,
    UnavailableError,
)
from quorate.config.client_tls import OPTIONS, client_tls_problem
from quorate.config.secret_files import read_secret
from quorum.batch import scan_batches
from quorum.errors import ConfigError, StorageError
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import MetaProperties, load_foreign_identity, write_identity
from quorum.log.layout import META_PROPERTIES_NAME, partition_directory
from quorum.log.recovery import open_log
from quorum.log.segmented_log import SegmentedLog
from quorum.types import SnapshotId
from quorum.v1.metadata_pb2 import FetchLogRequest
from snapshot.naming import FileState, parse_name
from snapshot.writer import write_checkpoint

if TYPE_CHECKING:
    import grpc

CLIENT_ID = "quorate-audit"
TIMEOUT_S = 10.0
_NODE_ID = 0
_DIRECTORY_ID = b"quorate-log-copy"
_NO_TIME = -1
_LOCK_NAME = "copy.lock"
_PEM_FILES = ("tlsCa", "tlsCert", "tlsKey")


def fetch_log_into(
    folder: Path,
    endpoints: Sequence[str],
    options: Mapping[str, str] | None = None,
    *,
    before_asking: Callable[[], None] = lambda: None,
) -> int:
    """Fetch what is committed and not yet in ``folder``; return the end offset of the copy.

    Where the log was trimmed beyond the copy, a checkpoint of the state is written in place of the
    gap. ``folder`` is such a copy already, or it is empty, or it does not exist: a node's data
    directory is never written to. ``options``: ``tlsCa``, ``tlsCert`` and ``tlsKey`` are files in
    PEM; ``user`` with ``passwordFile``, or ``tokenFile``, name the caller. ``before_asking`` is
    called once folder and options are right, and may refuse the addresses.

    Raises:
        AuditError: No node answered, or one refused; or ``folder`` is no copy, or one of another
            cluster.
        LogTruncatedError: The log no longer contains the records that were copied.
        StorageError: A file cannot be read or written.
    """
    try:
        _refuse_other_folders(folder)
        identity = _identity(options or {})
        before_asking()
        with _locked(folder), BlockingClient(endpoints, **identity) as client:
            return _Mirror(folder, endpoints, client).run()
    except UnavailableError as error:
        raise AuditError(
            f"{', '.join(endpoints)}: no node answered within {TIMEOUT_S:.0f} s; check the address "
            "(listeners.client of a node) and whether it needs tlsCa"
        ) from error
    except (ClientError, ValueError) as error:
        raise AuditError(f"{', '.join(endpoints)}: {error}") from error


def _identity(options: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {"client_id": CLIENT_ID, "timeout_seconds": TIMEOUT_S}
    found["credentials"] = _credentials(options)
    if "user" in options:
        found["user"] = options["user"]
        found["password"] = _secret(options.get("passwordFile", ""), "option passwordFile")
    if "tokenFile" in options:
        found["token"] = _secret(options["tokenFile"], "option tokenFile")
    return found


def _credentials(options: Mapping[str, str]) -> grpc.ChannelCredentials | None:
    if "tlsCa" not in options:
        return None
    files = [Path(options[name]) if name in options else None for name in _PEM_FILES]
    if problem := client_tls_problem(files[0], files[1], files[2], OPTIONS):
        raise AuditError(problem)
    import grpc

    ca, certificate, key = (_read(path) if path is not None else None for path in files)
    return grpc.ssl_channel_credentials(ca, key, certificate)


def _secret(path: str, what: str) -> str:
    """Return what a file holds; everybody may read none, as with the command line."""
    try:
        return read_secret(Path(path), what)
    except ConfigError as error:
        raise AuditError(str(error)) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AuditError(f"{path}: cannot read: {error.strerror}") from error


def _refuse_other_folders(folder: Path) -> None:
    """Refuse a folder with anything in it that is no copy: a node's log must stay as it is.

    Records arrive with their secrets replaced, so a node with them would hold another history.
    """
    try:
        names = {each.name for each in folder.iterdir()} if folder.exists() else set()
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", folder) from error
    if names <= {_LOCK_NAME}:
        return
    fs = OsFileSystem()
    if META_PROPERTIES_NAME in names:
        if load_foreign_identity(fs, folder).directory_id == _DIRECTORY_ID:
            return
        raise AuditError(
            f"{folder}: a node's data directory; with option endpoint the path is the folder of a "
            "copy of the log: name one that does not exist"
        )
    raise AuditError(
        f"{folder}: neither empty nor a copy of a log; with option endpoint the path is the folder "
        "of a copy: name one that does not exist"
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(f"cannot write the copy of the log: {error.strerror}", folder) from error
    try:
        # Waits: the other process fetches what this one needs.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


class _Mirror:
    def __init__(self, folder: Path, endpoints: Sequence[str], client: BlockingClient) -> None:
        self._folder = folder
        self._endpoints = ", ".join(endpoints)
        self._client = client
        self._fs = OsFileSystem()
        self._partition = partition_directory(folder)

    def run(self) -> int:
        cluster_id = self._client.describe_cluster().cluster_id
        if not (self._folder / META_PROPERTIES_NAME).exists():
            write_identity(
                self._fs, self._folder, MetaProperties(cluster_id, _NODE_ID, _DIRECTORY_ID)
            )
        copied = load_foreign_identity(self._fs, self._folder)
        if copied.cluster_id != cluster_id:
            raise AuditError(
                f"{self._folder}: the copy is of cluster {copied.cluster_id}, and "
                f"{self._endpoints} is of cluster {cluster_id}; name another folder"
            )
        log, _ = open_log(self._fs, self._partition, snapshots=self._checkpoints())
        try:
            while self._fetch(log):
                pass
            log.flush()
            log.store_high_watermark(log.end.offset)
            return log.end.offset
        finally:
            log.close()

    def _checkpoints(self) -> list[SnapshotId]:
        if not self._fs.exists(self._partition):
            return []
        names = map(parse_name, self._fs.list_directory(self._partition))
        found = [name[0] for name in names if name is not None and name[1] is FileState.SEALED]
        return sorted(found, key=lambda each: (each.offset, each.epoch))

    def _fetch(self, log: SegmentedLog) -> bool:
        """Append the next records; return whether there were any."""
        end = log.end
        request = FetchLogRequest(
            offset=end.offset, last_fetched_epoch=end.epoch if end.offset else -1
        )
        try:
            response = self._client.fetch_log(request)
        except LogTruncationError as error:
            raise self._truncated(
                error.divergent_offset or 0, error.divergent_epoch or 0
            ) from error
        except OffsetOutOfRangeError as error:
            if error.bounds is None or error.bounds.earliest_offset <= end.offset:
                raise
            self._take_state(log, error.bounds.earliest_offset)
            return True
        if (hint := response.diverging) is not None:
            raise self._truncated(hint.offset, hint.epoch)
        for header in scan_batches(response.records):
            data = response.records[header.position : header.end_position]
            log.append(data, base_offset=header.base_offset, end_offset=header.end_offset)
        return bool(response.records)

    def _truncated(self, offset: int, epoch: int) -> LogTruncatedError:
        return LogTruncatedError(
            f"{self._endpoints} no longer has the records copied to {self._folder}; keep the copy "
            "as evidence and name another folder",
            offset=offset,
            epoch=epoch,
            is_exact=False,
        )

    def _take_state(self, log: SegmentedLog, log_start: int) -> None:
        """Replace the log by a checkpoint at or above the offset."""
        values: list[bytes] = []

        async def read() -> tuple[SnapshotId, bytes]:
            chunks = self._client.client.read_state(at_least_offset=log_start, of_checkpoint=True)
            async for chunk in chunks:
                if chunk.chunk == 0:
                    values.clear()
                values.extend(chunk.records)
                if chunk.is_last:
                    return SnapshotId(chunk.offset, chunk.epoch), chunk.log_digest
            raise AuditError(f"{self._endpoints}: the state ended before its last part")

        snapshot_id, digest = self._client.run(read)
        write_checkpoint(
            self._fs,
            self._partition,
            snapshot_id,
            values=values,
            last_contained_log_timestamp=_NO_TIME,
            log_digest=digest,
        )
        log.replace_with(snapshot_id, digest=digest)
