"""``meta.properties``: the identity of a disk, written once when its directory is formatted.

Kafka's Java properties file of version 1, with our checksum in a comment that Kafka's reader
skips. The directory id names this disk (KIP-853): it distinguishes a voter that came back from a
voter whose disk was wiped.

See: KIP-866 (meta.properties version 1), KIP-858 (reserved directory ids).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from crc32c import crc32c

from quorum.errors import IdentityDamagedError, IdentityError, StorageError
from quorum.log.layout import (
    META_PROPERTIES_NAME,
    PARTITION_METADATA_NAME,
    partition_directory,
    segment_bases,
)
from quorum.log.side_file import read_file, replace_file
from quorum.ports import FileSystem
from quorum.types import (
    METADATA_TOPIC_ID,
    ZERO_UUID,
    NodeId,
    Uuid,
    uuid_from_text,
    uuid_to_text,
)

RESERVED_DIRECTORY_IDS = 100
"""The first hundred UUID values are reserved and never name a disk."""
NODE_ID_MAX = (1 << 31) - 1
_CHECKSUM = re.compile(rb"^# ?quorate-crc32c=([0-9a-f]{8})\n", re.MULTILINE)
_MARKS = (b"quorate-", b"crc32c=")
"""Either marks a checksum of ours, even if a bit of the other one has flipped."""
_INCARNATION_KEY = "log.incarnation.id"
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_=.\-]{1,128}")
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_PARTITION_METADATA = re.compile(r"version:\s*0\s*\n\s*topic_id:\s*(\S+)")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Identity of a data directory. ``directory_id`` is ``ZERO_UUID`` only in foreign files."""

    cluster_id: str
    node_id: NodeId
    directory_id: Uuid
    log_incarnation_id: Uuid = ZERO_UUID
    """The incarnation of the log that this directory belongs to (ADR 65)."""


def is_reserved_directory_id(directory_id: Uuid) -> bool:
    """Whether this id is reserved and must not name a disk."""
    return int.from_bytes(directory_id, "big") < RESERVED_DIRECTORY_IDS


def write_identity(fs: FileSystem, directory: Path, identity: MetaProperties) -> None:
    """Write ``meta.properties`` durably; replace an existing one.

    Raises:
        IdentityError: The values cannot name a node's directory.
        StorageError: The file could not be written.
    """
    path = directory / META_PROPERTIES_NAME
    problem = _problem(identity)
    if problem:
        raise IdentityError(problem, path)
    lines = (
        f"cluster.id={identity.cluster_id}\n"
        f"directory.id={uuid_to_text(identity.directory_id)}\n"
        f"{_incarnation_line(identity)}"
        f"node.id={identity.node_id}\n"
        "version=1\n"
    ).encode()
    replace_file(fs, path, b"#\n#quorate-crc32c=%08x\n" % crc32c(lines) + lines)


def _incarnation_line(identity: MetaProperties) -> str:
    """Return the line of the log's incarnation; none for the first one."""
    if identity.log_incarnation_id == ZERO_UUID:
        return ""
    return f"{_INCARNATION_KEY}={uuid_to_text(identity.log_incarnation_id)}\n"


def _problem(identity: MetaProperties) -> str:
    if not _CLUSTER_ID.fullmatch(identity.cluster_id):
        return f"cluster id {identity.cluster_id!r} is not 1 to 128 letters, digits or _-=."
    if not 0 <= identity.node_id <= NODE_ID_MAX:
        return f"node id {identity.node_id} is not in 0 to {NODE_ID_MAX}"
    if len(identity.directory_id) != 16 or is_reserved_directory_id(identity.directory_id):
        return f"directory id {uuid_to_text(identity.directory_id)} is reserved"
    if len(identity.log_incarnation_id) != 16:
        return f"a log incarnation id of {len(identity.log_incarnation_id)} bytes"
    return ""


def load_identity(
    fs: FileSystem,
    directory: Path,
    *,
    node_id: NodeId | None = None,
    cluster_id: str | None = None,
) -> MetaProperties:
    """Read and verify the identity of a data directory of ours.

    ``node_id`` and ``cluster_id`` are the configured values, if any.

    Raises:
        IdentityDamagedError: The file is damaged, or missing beside a log.
        IdentityError: Not formatted, or formatted for another node or cluster.
    """
    path = directory / META_PROPERTIES_NAME
    _refuse_lost(fs, path)
    data = _read(fs, path)
    if not _has_checksum(data):
        _parse(data, path)
        raise IdentityError(
            "no checksum: not written by this program; `quorate adopt DIR` makes a directory of a "
            "Kafka controller ours",
            path,
        )
    _check(data, path)
    identity = _parse(data, path)
    problem = _problem(identity)
    if problem:
        raise IdentityError(problem, path)
    if node_id is not None and identity.node_id != node_id:
        raise IdentityError(f"belongs to node {identity.node_id}, not to node {node_id}", path)
    if cluster_id is not None and identity.cluster_id != cluster_id:
        raise IdentityError(
            f"belongs to cluster {identity.cluster_id}, not to cluster {cluster_id}", path
        )
    return identity


def load_foreign_identity(fs: FileSystem, directory: Path) -> MetaProperties:
    """Read a ``meta.properties`` of Kafka, version 0 or 1, or of ours, for tools.

    Raises:
        IdentityDamagedError: Malformed, or written by this program and then damaged.
        IdentityError: Missing.
    """
    path = directory / META_PROPERTIES_NAME
    data = _read(fs, path)
    if _has_checksum(data):
        _check(data, path)
    return _parse(data, path)


def seal_foreign_identity(fs: FileSystem, directory: Path, directory_id: Uuid) -> None:
    """Add our checksum to a ``meta.properties`` of Kafka; a sealed one is left unchanged.

    Every line stays; ``directory_id`` is added if the file has none. Durable on return.

    Raises:
        IdentityError: Missing, malformed, or not a valid identity of a node of ours.
        StorageError: The file could not be written; it is unchanged.
    """
    path = directory / META_PROPERTIES_NAME
    data = _read(fs, path)
    if _has_checksum(data):
        _check(data, path)
        return
    identity = _parse(data, path)
    body = data if data.endswith(b"\n") else data + b"\n"
    if identity.directory_id == ZERO_UUID:
        identity = replace(identity, directory_id=directory_id)
        body += f"directory.id={uuid_to_text(directory_id)}\n".encode()
    problem = _problem(identity)
    if problem:
        raise IdentityError(problem, path)
    replace_file(fs, path, b"#quorate-crc32c=%08x\n" % crc32c(body) + body)


def unseal_identity(fs: FileSystem, directory: Path) -> None:
    """Remove our checksum from ``meta.properties``, so that it is as Kafka writes it.

    Raises:
        IdentityError: Missing or damaged.
        StorageError: The file could not be written; it is unchanged.
    """
    path = directory / META_PROPERTIES_NAME
    data = _read(fs, path)
    if _has_checksum(data):
        _check(data, path)
        replace_file(fs, path, _CHECKSUM.sub(b"", data, count=1))


def _has_checksum(data: bytes) -> bool:
    """Whether this program wrote a checksum into it, intact or not."""
    lines = [line for line in data.split(b"\n") if not line.startswith(b"cluster.id=")]
    return any(mark in line for line in lines for mark in _MARKS)


def _check(data: bytes, path: Path) -> None:
    found = _CHECKSUM.search(data)
    if found is None:
        raise IdentityDamagedError("the checksum line is damaged", path)
    if int(found[1], 16) != crc32c(data[found.end() :]):
        raise IdentityDamagedError("checksum does not match: the file was damaged or edited", path)


def _refuse_lost(fs: FileSystem, path: Path) -> None:
    # An interrupted format leaves no segment; a directory with a segment was started before.
    try:
        is_there = fs.exists(path)
        names = [] if is_there else fs.list_directory(partition_directory(path.parent))
    except StorageError as error:
        raise IdentityDamagedError(f"unreadable: {error}", path) from error
    if segment_bases(names):
        raise IdentityDamagedError("is missing beside a metadata log: the file was lost", path)


def _read(fs: FileSystem, path: Path) -> bytes:
    try:
        if not fs.exists(path):
            raise IdentityError("the directory is not formatted", path)
        return read_file(fs, path)
    except IdentityError:
        raise
    except ValueError as error:
        raise IdentityDamagedError(str(error), path) from error
    except StorageError as failure:
        raise IdentityDamagedError(f"unreadable: {failure}", path) from failure


def _parse(data: bytes, path: Path) -> MetaProperties:
    try:
        properties = parse_properties(data.decode("latin-1"))
        version = properties.get("version", "0")
        if version not in ("0", "1"):
            raise ValueError(f"version {version}; this release reads 0 and 1")
        node: str | None
        if version == "1":
            node, cluster = properties["node.id"], properties["cluster.id"]
        else:
            node = properties.get("node.id") or properties.get("broker.id")
            cluster = properties.get("cluster.id", "")
        if node is None:
            raise KeyError("node.id")
        if not _NUMBER.fullmatch(node):
            raise ValueError(f"node.id {node!r} is no number")
        directory, incarnation = (
            ZERO_UUID if text is None else uuid_from_text(text)
            for text in (properties.get("directory.id"), properties.get(_INCARNATION_KEY))
        )
        return MetaProperties(cluster, int(node), directory, incarnation)
    except KeyError as absent:
        raise IdentityDamagedError(f"{absent.args[0]} is missing", path) from absent
    except ValueError as error:
        raise IdentityDamagedError(str(error), path) from error


def parse_properties(text: str) -> dict[str, str]:
    """Parse a Java properties file without continuation lines.

    A backslash quotes the next character, as ``java.util.Properties`` writes ":" and "=".

    Raises:
        ValueError: A line continues on the next one.
    """
    properties = {}
    for line in text.splitlines():
        content = line.strip()
        if not content or content[0] in "#!":
            continue
        if content.endswith("\\"):
            raise ValueError("continuation lines are not supported")
        key, _, value = content.partition("=")
        properties[key.strip()] = re.sub(r"\\(.)", r"\1", value.strip())
    return properties


def write_partition_metadata(fs: FileSystem, directory: Path) -> None:
    """Write ``partition.metadata`` with the metadata topic's fixed id, durably."""
    text = f"version: 0\ntopic_id: {uuid_to_text(METADATA_TOPIC_ID)}"
    replace_file(fs, directory / PARTITION_METADATA_NAME, text.encode())


def check_partition_metadata(fs: FileSystem, directory: Path) -> bool:
    """Whether ``partition.metadata`` exists; if so, it names the metadata topic.

    Raises:
        IdentityDamagedError: It is malformed or names another topic. The folder has the metadata
            topic's name, so an operator's mistake cannot explain it.
    """
    path = directory / PARTITION_METADATA_NAME
    if not fs.exists(path):
        return False
    try:
        lines = _PARTITION_METADATA.fullmatch(read_file(fs, path).decode("latin-1").strip())
        if lines is None:
            raise ValueError("not a partition.metadata file of version 0")
        topic_id = uuid_from_text(lines[1])
    except ValueError as error:
        raise IdentityDamagedError(str(error), path) from error
    if topic_id != METADATA_TOPIC_ID:
        raise IdentityDamagedError(f"belongs to topic {uuid_to_text(topic_id)}", path)
    return True
