"""Faults of a node's environment. Each one proves that it took place, and checks the reaction.

A fault that this machine cannot make (mounting needs root) is reported as not done. The run then
ends with exit code 1.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from quorate.cli.exits import Exit
from quorate.demo.local_cluster import ClusterError, LocalNode
from tests.campaigns.report import Report, Say
from tests.integration.processes import Processes, running
from tests.integration.test_descriptors import outlast_a_shortage
from tests.integration.traffic import config_value, wait_equal_images, write_configs, write_many

MEMORY_SPARE_BYTES = 4 << 20
MEMORY_SECONDS = 40.0
TMPFS_BYTES = 4 << 20
SMALL_SETTINGS: dict[str, object] = {
    "log.segment_bytes": 64 << 10,
    "snapshot.max_bytes_between": 64 << 20,
}


class NotPossibleError(Exception):
    """The fault cannot be injected on this machine; the message names what is missing."""


@dataclass
class Seen:
    """The observations of one fault."""

    effect: str = ""
    """The proof that the fault took place; empty if it did not."""
    answer: str = ""
    """How the node reacted, with its exit code if it ended."""
    problems: list[str] = field(default_factory=list)

    def expect(self, is_right: bool, words: str) -> None:
        """Add a problem if ``is_right`` is false."""
        if not is_right:
            self.problems.append(words)


def still_whole(cluster: Processes, seen: Seen) -> None:
    """Check that every node is ready and caught up, and that a new write can be read."""
    value = str(secrets.randbelow(1 << 40))
    try:
        for node in cluster.voters:
            if not node.is_running:
                cluster.start(node)
        cluster.wait_ready(cluster.voters)
        write_configs(cluster, [value])
        seen.expect(config_value(cluster) == value, "an acknowledged write is not there")
        wait_equal_images(cluster, cluster.voters)
    except ClusterError as error:
        seen.problems.append(f"the cluster does not recover: {error}")


def _follower(cluster: Processes) -> LocalNode:
    leader = cluster.leader()
    return next(node for node in cluster.voters if node is not leader)


def _logged(node: LocalNode, *words: str) -> str:
    """Return the first log line that contains all the words; empty if none does."""
    text = node.log_path.read_text(errors="replace")
    return next((line for line in text.splitlines() if all(each in line for each in words)), "")


# ---------------------------------------------------------------- faults


def descriptors(folder: Path) -> Seen:
    """Use up every descriptor of every node, and kill the leader meanwhile."""
    with running(folder) as cluster:
        outlast_a_shortage(cluster)
        seen = Seen("connects failed with 'Too many open files'", "all pairs are connected again")
        still_whole(cluster, seen)
    return seen


def memory_limit(folder: Path) -> Seen:
    """Limit a follower's memory slightly above its use, and send it more than that."""
    seen = Seen()
    with running(folder) as cluster:
        node = _follower(cluster)
        write_configs(cluster, ["5"])
        assert node.process is not None
        process = psutil.Process(node.process.pid)
        used = _data_bytes(node.process.pid)
        limits = (used + MEMORY_SPARE_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1])
        resource.prlimit(node.process.pid, resource.RLIMIT_DATA, limits)
        deadline = time.monotonic() + MEMORY_SECONDS
        while node.is_running and not _short_of_memory(node) and time.monotonic() < deadline:
            write_many(cluster, 400)
        is_up = node.is_running
        if _short_of_memory(node) or not is_up:
            seen.effect = f"at {used >> 20} + {MEMORY_SPARE_BYTES >> 20} MiB: " + (
                "it ran short" if is_up else "it ended"
            )
        if is_up:
            seen.answer = f"goes on with {process.num_threads()} threads"
            cluster.kill(node)
        else:
            code = cluster.wait_ended(node)
            seen.answer = f"ends with {code}"
            seen.expect(code != 0, "it ended as if it had been asked to")
        seen.expect(config_value(cluster) == "5", "an acknowledged write is not there")
        still_whole(cluster, seen)
    return seen


def _data_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    raise ClusterError("no VmData")


def _short_of_memory(node: LocalNode) -> bool:
    text = node.log_path.read_text(errors="replace")
    return any(
        each in text for each in ("MemoryError", "Cannot allocate memory", "can't start new")
    )


def memory_limit_at_start(folder: Path) -> Seen:
    """Start a server with less memory than loading its packages needs."""
    seen = Seen()
    with running(folder) as cluster:
        node = _follower(cluster)
        cluster.stop(node)
        most = 96 << 20

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

        ended = cluster.run("server", "--config", str(node.config_path), limit=limit)
        seen.effect = f"RLIMIT_AS of {most >> 20} MiB" if ended.status else ""
        seen.answer = f"ends with {ended.status}"
        still_whole(cluster, seen)
    return seen


def read_only(folder: Path) -> Seen:
    """Mount the data directory read-only before the node starts."""
    seen = Seen()
    with running(folder) as cluster:
        node = _follower(cluster)
        write_configs(cluster, ["5"])
        seen.expect(cluster.stop(node) == 0, "no clean stop")
        with _mounted("--bind", str(node.data_dir), str(node.data_dir)):
            _command("mount", "-o", "remount,ro,bind", str(node.data_dir))
            seen.effect = _refusal_to_write(node.data_dir)
            ended = cluster.serve(node)
        seen.answer = f"start ends with {ended.status}"
        text = ended.out + ended.err
        seen.expect(ended.status in (Exit.FAILED, Exit.DAMAGED), f"ended with {ended.status}")
        seen.expect(str(node.data_dir) in text, "does not name the directory")
        seen.expect("Traceback" not in text, "left a traceback")
        still_whole(cluster, seen)
    return seen


def read_only_while_running(folder: Path) -> Seen:
    """Make the leader's directory read-only, so that files opened later cannot be written."""
    seen = Seen()
    with running(folder, settings=SMALL_SETTINGS) as cluster:
        node = cluster.leader()
        write_configs(cluster, ["5"])
        with _mounted("--bind", str(node.data_dir), str(node.data_dir)):
            _command("mount", "-o", "remount,ro,bind", str(node.data_dir))
            seen.effect = _refusal_to_write(node.data_dir)
            # Until a segment is full and the next one has to be made.
            deadline = time.monotonic() + MEMORY_SECONDS
            while node.is_running and time.monotonic() < deadline:
                write_many(cluster, 200)
            if node.is_running:
                seen.problems.append("it never noticed")
                cluster.kill(node)
            code = cluster.wait_ended(node)
        seen.answer = f"ends with {code}; another leads"
        seen.expect(code == Exit.DAMAGED, f"ended with {code}")
        seen.expect(bool(_logged(node, "Read-only")), "does not say why")
        seen.expect(config_value(cluster) == "5", "an acknowledged write is not there")
        still_whole(cluster, seen)
    return seen


def full_tmpfs(folder: Path) -> Seen:
    """Fill the file system of the leader's directory."""
    seen = Seen()
    cluster = Processes(folder, settings=SMALL_SETTINGS)
    node = cluster.voters[0]
    node.folder.mkdir(parents=True)
    with _mounted("-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "none", str(node.folder)):
        try:
            cluster.format_all()
            cluster.start_all()
            write_configs(cluster, ["5"])
            _lead(cluster, node)
            filler = node.folder / "filler"
            _fill(filler)
            deadline = time.monotonic() + MEMORY_SECONDS
            while node.is_running and time.monotonic() < deadline:
                write_many(cluster, 200)
            free = os.statvfs(node.folder).f_bavail
            if node.is_running:
                seen.problems.append("it never noticed")
                cluster.kill(node)
            code = cluster.wait_ended(node)
            seen.effect = f"{free} blocks free of {TMPFS_BYTES >> 20} MiB"
            seen.answer = f"ends with {code}; starts again when there is room"
            seen.expect(code == Exit.DAMAGED, f"ended with {code}")
            seen.expect(config_value(cluster) == "5", "an acknowledged write is not there")
            filler.unlink()
            still_whole(cluster, seen)
        finally:
            cluster.end_all()
    return seen


def _lead(cluster: Processes, node: LocalNode) -> None:
    """Make this node the leader."""
    if cluster.leader() is not node:
        cluster.ask("quorum", "transfer-leader", str(node.id))
        cluster.until("its leadership", lambda: cluster.find_leader() is node or None)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def two_servers(folder: Path) -> Seen:
    """Start a second server on the directory of a running one, by the same and by another path."""
    seen = Seen()
    with running(folder) as cluster:
        node = cluster.leader()
        write_configs(cluster, ["5"])
        other = folder / "another-path"
        other.symlink_to(node.data_dir)
        for path in (node.data_dir, other):
            ended = cluster.serve(node, "--set", f"node.data_dir={path}")
            seen.effect = "both were started on the same files"
            seen.answer = f"the second ends with {ended.status}, the first goes on"
            seen.expect(ended.status == Exit.FAILED, f"the second ended with {ended.status}")
            seen.expect("in use by another process" in ended.err, "does not say why")
        seen.expect(cluster.leader() is node, "the first no longer leads")
        still_whole(cluster, seen)
    return seen


@contextlib.contextmanager
def _mounted(*arguments: str) -> Iterator[None]:
    """Mount a file system while the block runs.

    Raises:
        NotPossibleError: Not allowed here.
    """
    if os.geteuid() != 0:
        raise NotPossibleError("mounting needs root")
    _command("mount", *arguments)
    try:
        yield
    finally:
        _command("umount", "--lazy", arguments[-1])


def _command(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotPossibleError(f"{' '.join(words[:2])}: {done.stderr.strip()}")


def _refusal_to_write(directory: Path) -> str:
    """Try to write there; return the error, empty if the write succeeds."""
    probe = directory / "probe"
    try:
        probe.touch()
    except OSError as error:
        return str(error.strerror)
    probe.unlink()
    return ""


# ---------------------------------------------------------------- the campaign


def faults() -> dict[str, Callable[[Path], Seen]]:
    """Return every fault by name. Those of the clock are in ``clock_steps``."""
    from tests.campaigns.clock_steps import clock_steps

    found = (
        descriptors, memory_limit, memory_limit_at_start, read_only, read_only_while_running,
        full_tmpfs, two_servers, clock_steps,
    )  # fmt: skip
    return {fault.__name__: fault for fault in found}


def run_faults(folder: Path, names: list[str], seed: int, announce: Say) -> Report:
    """Make each named fault once, in an order drawn from the seed."""
    began = time.monotonic()
    random.Random(seed).shuffle(names)
    rows, problems, shortfalls = [], [], []
    for name in names:
        row = {"fault": name.replace("_", " "), "effect": "", "answer": ""}
        try:
            seen = faults()[name](folder / name)
        except NotPossibleError as error:
            shortfalls.append(f"{name} was not done: {error}")
            row["answer"] = f"not done: {error}"
        else:
            if not seen.effect:
                seen.problems.append("it had no effect")
            row |= {"effect": seen.effect, "answer": seen.answer}
            problems += [f"{name}: {each}" for each in seen.problems]
        rows.append(row)
        announce(f"{name}: {row['effect']}; {row['answer']}; {len(problems)} problems so far")
    figures = {"faults": len(names), "done": len(names) - len(shortfalls)}
    rows.sort(key=lambda row: row["fault"])
    return Report(
        "environment", seed, time.monotonic() - began, figures, rows, problems, shortfalls
    )
