"""Checks of an installation and of a node's environment, each with a reason and a remedy.

Read-only but for ``measure_disk``, and useful beside a running node as well as before the first
start. Nothing here needs a cluster that answers.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import quorate
from quorate.config.addresses import parse_address
from quorate.config.server_config import ServerConfig
from quorate.doctor.finding import CheckResult, Finding
from quorate.doctor.side_files import examine_side_files
from quorum.errors import IdentityError, QuorateError, SnapshotCorruptError, StorageError
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import load_identity
from quorum.log.layout import DAMAGED_SUFFIX, partition_directory, segment_bases, segment_path
from snapshot.naming import FileState, parse_name
from snapshot.reader import CheckpointReader

PACKAGES = (
    "audit",
    "history",
    "metrics",
    "quorate",
    "quorum",
    "simulation",
    "snapshot",
    "statemachine",
)
"""Our top-level packages. Their names are everyday words, see ``foreign_packages``."""

OPEN_FILES_MIN = 4096
SYNC_PROBES = 20
SYNC_SLOW_S = 0.05
_PROBE_NAME = ".quorate-doctor"


def foreign_packages(packages: Sequence[str] = PACKAGES) -> list[str]:
    """Those of our packages that Python would import from elsewhere than beside ``quorate``.

    Another distribution may own a folder of the same name (``statemachine``, ``metrics``); then
    the wrong code would run, so a server refuses to start. One sentence each.
    """
    home = Path(quorate.__file__).resolve().parent.parent
    problems = []
    for name in packages:
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
        if not places:
            problems.append(f"package {name} is missing")
        elif Path(places[0]).resolve().parent != home:
            problems.append(f"package {name} would come from {places[0]}, not from {home}")
    return problems


def examine_installation() -> Iterator[Finding]:
    """Python, our packages, and the limits of this process."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", CheckResult.OK, version)
    problems = foreign_packages()
    if problems:
        yield Finding("packages", CheckResult.FAILED, "; ".join(problems),
                      "install Quorate into an environment of its own")  # fmt: skip
    else:
        yield Finding("packages", CheckResult.OK, f"{len(PACKAGES)} packages from one folder")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES_MIN:
        yield Finding("open files", CheckResult.WARNING, f"limit {soft}",
                      f"raise it to {OPEN_FILES_MIN} or more (ulimit -n, LimitNOFILE)")  # fmt: skip
    else:
        yield Finding("open files", CheckResult.OK, f"limit {soft}")


def examine_node(config: ServerConfig) -> Iterator[Finding]:
    """A node's configuration and data directory."""
    problems = config.problems()
    for problem in problems:
        yield Finding(
            "configuration", CheckResult.FAILED, problem, "see docs/reference/configuration.md"
        )
    if not problems:
        yield Finding("configuration", CheckResult.OK,
                      f"cluster digest {config.cluster.digest().hex()}")  # fmt: skip
    yield from _examine_voters(config)
    for address in (*config.bootstrap.servers, *(_host_of(v) for v in config.bootstrap.voters)):
        yield _examine_name(address)
    if config.node.data_dir != Path():
        yield from _examine_directory(config)


def _examine_voters(config: ServerConfig) -> Iterator[Finding]:
    count = len(config.bootstrap.voters)
    if count and count % 2 == 0:
        yield Finding("voters", CheckResult.WARNING, f"{count} voters",
                      f"{count - 1} survive as many failures; use an odd number")  # fmt: skip


def _host_of(voter: str) -> str:
    return voter.partition("@")[2]


def _examine_name(address: str) -> Finding:
    check = f"address {address}"
    try:
        host, port = parse_address(address)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (ValueError, OSError) as error:
        return Finding(check, CheckResult.FAILED, f"does not resolve: {error}",
                       "check the name, or DNS of this machine")  # fmt: skip
    return Finding(check, CheckResult.OK, ", ".join(sorted({str(entry[4][0]) for entry in found})))


def _examine_directory(config: ServerConfig) -> Iterator[Finding]:
    fs, data_dir = OsFileSystem(), config.node.data_dir
    try:
        identity = load_identity(
            fs, data_dir, node_id=config.node.id if config.node.id >= 0 else None
        )
    except IdentityError as error:
        yield Finding(
            "data directory", CheckResult.FAILED, str(error), "see `quorate format --help`"
        )
        return
    except QuorateError as error:
        yield Finding("data directory", CheckResult.FAILED, str(error), "check owner and mode")
        return
    yield Finding("data directory", CheckResult.OK,
                  f"node {identity.node_id} of cluster {identity.cluster_id}")  # fmt: skip
    if not os.access(data_dir, os.W_OK):
        yield Finding("write access", CheckResult.FAILED, f"{data_dir} is not writable",
                      "give the folder to the user that runs the node")  # fmt: skip
    free = shutil.disk_usage(data_dir).free
    enough = free >= config.limits.disk_free_bytes_min
    yield Finding("disk space", CheckResult.OK if enough else CheckResult.FAILED, f"{free >> 20} "
                                                                                  "MiB free",
                  "" if enough else "free or add space; the node refuses writes")  # fmt: skip
    partition = partition_directory(data_dir)
    yield from examine_side_files(fs, partition, identity.directory_id)
    yield from _examine_files(fs.list_directory(partition))
    for path in checkpoint_files(data_dir):
        try:
            CheckpointReader(path).head()
        except (SnapshotCorruptError, StorageError) as error:
            yield Finding(path.name, CheckResult.FAILED, str(error),
                          "see docs/operations/recover.md, section Damage")  # fmt: skip


def _examine_files(names: list[str]) -> Iterator[Finding]:
    parsed = [parse_name(name) for name in names]
    set_aside = [name for name in names if name.endswith((DAMAGED_SUFFIX, FileState.CORRUPT.value))]
    sealed = [entry[0] for entry in parsed if entry and entry[1] is FileState.SEALED]
    newest = max(sealed, key=lambda snapshot_id: snapshot_id.offset, default=None)
    yield Finding("log", CheckResult.OK, f"{len(segment_bases(names))} segments, newest checkpoint "
                  + (str(newest) if newest else "none"))  # fmt: skip
    if set_aside:
        yield Finding("quarantine", CheckResult.WARNING, ", ".join(set_aside),
                      "kept to look at; see docs/operations/recover.md, Damage")  # fmt: skip


def segment_files(data_dir: Path) -> list[Path]:
    """Return the log segments of a data directory, ascending."""
    directory = partition_directory(data_dir)
    names = OsFileSystem().list_directory(directory)
    return [segment_path(directory, base) for base in segment_bases(names)]


def checkpoint_files(data_dir: Path) -> list[Path]:
    """Return the sealed checkpoints of a data directory, ascending."""
    directory = partition_directory(data_dir)
    entries = ((parse_name(name), name) for name in OsFileSystem().list_directory(directory))
    return [directory / name for entry, name in entries if entry and entry[1] is FileState.SEALED]


def measure_disk(data_dir: Path) -> Finding:
    """Measure small synced writes on the disk of the log. Leaves no file behind."""
    path = data_dir / _PROBE_NAME
    times = []
    try:
        with path.open("wb", buffering=0) as file:
            for _ in range(SYNC_PROBES):
                began = time.perf_counter()
                file.write(bytes(4096))
                os.fsync(file.fileno())
                times.append(time.perf_counter() - began)
    except OSError as error:
        return Finding("disk sync", CheckResult.FAILED, f"{path}: {error.strerror}",
                       "check owner, mode and free space")  # fmt: skip
    finally:
        path.unlink(missing_ok=True)
    median = sorted(times)[len(times) // 2]
    seen = f"median {median * 1000:.2f} ms, worst {max(times) * 1000:.2f} ms"
    if median > SYNC_SLOW_S:
        return Finding("disk sync", CheckResult.WARNING, seen,
                       "every commit waits for a sync; use a faster disk")  # fmt: skip
    return Finding("disk sync", CheckResult.OK, seen)
