"""A log directory of a broker: its identity, and one folder per replica, as Kafka lays them out.

An agent that is a process of its own keeps no data, only the folders: so a restart can be compared
with the metadata. Blocking; one process at a time.

    meta.properties              cluster id, broker id (``node.id``) and the directory's id
    .kafka_cleanshutdown         the broker epoch of a clean shutdown; removed at the next start
    orders-0/partition.metadata  the topic id of the replica

A folder that has no readable ``partition.metadata`` is no replica: a crash between the two steps of
making one leaves such a folder, and hosting the partition again completes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from quorate.broker_agent.errors import HostingError
from quorate.broker_agent.handler import HostedReplica
from quorum.errors import StorageError
from quorum.log.directory_lock import DirectoryLock
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import (
    MetaProperties,
    load_identity,
    parse_properties,
    write_identity,
)
from quorum.log.layout import META_PROPERTIES_NAME, PARTITION_METADATA_NAME
from quorum.log.side_file import replace_file
from quorum.types import NodeId, Uuid, draw_directory_id, uuid_from_text, uuid_to_text
from statemachine.sections.cluster import NO_EPOCH

CLEAN_SHUTDOWN_NAME = ".kafka_cleanshutdown"
_FOLDER = re.compile(r"([A-Za-z0-9._-]{1,249})-([0-9]{1,10})")


class LogDirectory:
    """One directory, locked until ``close``."""

    def __init__(self, path: Path, cluster_id: str, broker_id: NodeId) -> None:
        """Open a directory, or make it.

        Raises:
            HostingError: It belongs to another broker or cluster, is in use, or is unusable.
        """
        self._path = path
        self._fs = OsFileSystem()
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = DirectoryLock(path)
        except (OSError, StorageError) as error:
            raise HostingError(f"log directory {path}: {error}") from error
        try:
            if not (path / META_PROPERTIES_NAME).exists():
                drawn = draw_directory_id(os.urandom)
                write_identity(self._fs, path, MetaProperties(cluster_id, broker_id, drawn))
            identity = load_identity(self._fs, path, node_id=broker_id, cluster_id=cluster_id)
        except (OSError, StorageError) as error:
            self._lock.release()
            raise HostingError(f"log directory {path}: {error}") from error
        self.id: Uuid = identity.directory_id

    def close(self) -> None:
        """Release the directory."""
        self._lock.release()

    # ------------------------------------------------------------------ replicas

    def replicas(self) -> Iterator[HostedReplica]:
        """Yield the replicas in it."""
        for folder in sorted(self._path.iterdir()):
            named = _FOLDER.fullmatch(folder.name)
            topic_id = _topic_id(folder / PARTITION_METADATA_NAME) if named else None
            if named is not None and topic_id is not None:
                yield HostedReplica(topic_id, int(named[2]), named[1], self.id)

    def host(self, topic_name: str, partition: int, topic_id: Uuid) -> None:
        """Make the folder of a replica.

        Raises:
            HostingError: It cannot be made, or has the replica of another topic.
        """
        folder = self._folder(topic_name, partition)
        path = folder / PARTITION_METADATA_NAME
        known = _topic_id(path)
        if known == topic_id:
            return
        if known is not None:
            raise HostingError(
                f"{folder} has the log of topic id {uuid_to_text(known)}, "
                f"not of {uuid_to_text(topic_id)}"
            )
        text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}\n"
        try:
            folder.mkdir(exist_ok=True)
            # Not synced: what a crash takes away is made again by the next start.
            temporary = path.with_suffix(".tmp")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            raise HostingError(f"cannot host {topic_name}-{partition}: {error}") from error

    def delete(self, topic_name: str, partition: int) -> bool:
        """Delete a replica; return whether its folder is gone.

        A folder with files of somebody else stays, without its ``partition.metadata``.

        Raises:
            HostingError: It cannot be deleted.
        """
        folder = self._folder(topic_name, partition)
        try:
            (folder / PARTITION_METADATA_NAME).unlink(missing_ok=True)
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()
            return not folder.exists()
        except OSError as error:
            raise HostingError(f"cannot delete {folder}: {error}") from error

    def _folder(self, topic_name: str, partition: int) -> Path:
        name = f"{topic_name}-{partition}"
        if not _FOLDER.fullmatch(name):
            raise HostingError(f"{topic_name[:250]!r} is no name for a folder")
        return self._path / name

    # ------------------------------------------------------------------ a clean shutdown

    def clean_shutdown_epoch(self) -> int:
        """Return the broker epoch of the clean shutdown before this start, -1 for none."""
        try:
            text = (self._path / CLEAN_SHUTDOWN_NAME).read_text(encoding="utf-8")
            return int(json.loads(text)["brokerEpoch"])
        except (OSError, ValueError, KeyError, TypeError):
            return NO_EPOCH

    def forget_clean_shutdown(self) -> None:
        """Remove the mark of a clean shutdown, because this process is registered.

        Raises:
            HostingError: It cannot be removed.
        """
        try:
            (self._path / CLEAN_SHUTDOWN_NAME).unlink(missing_ok=True)
        except OSError as error:
            raise HostingError(f"log directory {self._path}: {error}") from error

    def mark_clean_shutdown(self, broker_epoch: int) -> None:
        """Write the epoch of a shutdown that the controller has granted, durably."""
        text = json.dumps({"version": 0, "brokerEpoch": broker_epoch})
        try:
            replace_file(self._fs, self._path / CLEAN_SHUTDOWN_NAME, text.encode())
        except StorageError as error:
            raise HostingError(f"log directory {self._path}: {error}") from error


def _topic_id(path: Path) -> Uuid | None:
    try:
        text = path.read_text(encoding="latin-1")
        found = parse_properties(text.replace(": ", "="))
        return uuid_from_text(found["topic_id"])
    except (OSError, ValueError, KeyError):
        return None
