"""A pod's network and file system on this machine: a namespace of its own, and an address.

Everything happens inside of namespaces that ``enter()`` makes, so it needs no root, and nothing of
it is left when their first process ends. The bridge is the pods' network; the process that calls
this stands for the kubelet and every other pod, and reaches all of them. Names are lines of
/etc/hosts.
"""

from __future__ import annotations

import itertools
import os
import stat
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote

ROOT = Path(__file__).resolve().parents[3]
_OWN_NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_LIBRARIES = (Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
_FOR_EVERYBODY = 0o005
BRIDGE = "pods"
BRIDGE_ADDRESS = "10.244.0.1"
PATIENCE_S = 30.0

_places = itertools.count(2)


def has_users() -> bool:
    """Whether a pod can have a user of its own: for root, if others may read what runs."""
    return os.geteuid() == 0 and all(
        path.stat().st_mode & _FOR_EVERYBODY == _FOR_EVERYBODY for path in (ROOT, *_LIBRARIES)
    )


def enter() -> list[str]:
    """Command that runs the rest in namespaces of its own. When that ends, all in them does."""
    if has_users():
        return ["unshare", *_OWN_NAMESPACES]
    return ["unshare", "--user", "--map-root-user", *_OWN_NAMESPACES]


def make_folders(paths: Iterable[str]) -> None:
    """Let folders be on this machine, for this process and all pods only."""
    for path in map(Path, paths):
        if not path.exists():
            place = next(each for each in path.parents if each.exists())
            _run("mount", "-t", "tmpfs", "none", "/mnt")
            for each in ("upper", "work"):
                Path("/mnt", each).mkdir()
            options = f"lowerdir={place},upperdir=/mnt/upper,workdir=/mnt/work"
            _run("mount", "-t", "overlay", "overlay", "-o", options, str(place))
            path.mkdir(parents=True)


def make_network(folder: Path) -> None:
    """Make the bridge, and let this process and all pods see ``folder``/hosts as /etc/hosts."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "addr", "add", f"{BRIDGE_ADDRESS}/16", "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")
    publish(folder, {})
    _run("mount", "--bind", str(folder / "hosts"), "/etc/hosts")


def publish(folder: Path, addresses: Mapping[str, str]) -> None:
    """Let names have these addresses from now on. The file stays the same one: it is mounted."""
    lines = ["127.0.0.1 localhost", *(f"{ip} {name}" for name, ip in addresses.items())]
    (folder / "hosts").write_text("\n".join(lines) + "\n")


class Sandbox:
    """What the containers of one pod share. A pod that is made again gets another address."""

    def __init__(
        self,
        name: str,
        mounts: Mapping[str, Path | None],
        *,
        is_read_only: bool,
        read_only: Collection[str] = (),
        programs: Collection[Path] = (ROOT,),
    ) -> None:
        """``mounts``: folders by path in the pod; None is an empty one that ends with the pod.

        ``programs`` are folders of this machine that the pod finds where they are, with Python.
        """
        place = next(_places)
        self.name = name
        self.address = f"10.244.{place // 250}.{place % 250 + 2}"
        self._pause = subprocess.Popen(
            ["unshare", "--net", "--mount", "sleep", "infinity"], stdin=subprocess.DEVNULL
        )
        self._wait_for_namespaces()
        self._connect(f"veth{place}")
        self._mount(mounts, read_only, (*programs, *_LIBRARIES), is_read_only=is_read_only)

    def command(self, words: Sequence[str]) -> list[str]:
        """The command that runs ``words`` in this pod."""
        return [*self._enter("--net", "--mount", "--wd=/"), *words]

    def remove(self) -> None:
        """End the namespaces. Processes in them must have ended."""
        self._pause.kill()
        self._pause.wait()

    def _enter(self, *options: str) -> list[str]:
        return ["nsenter", f"--target={self._pause.pid}", *options]

    def _wait_for_namespaces(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            links = [
                {name: Path(f"/proc/{pid}/ns/{name}").readlink() for name in ("net", "mnt")}
                for pid in ("self", self._pause.pid)
            ]
            if all(links[0][name] != links[1][name] for name in links[0]):
                return
            assert time.monotonic() < deadline, f"{self.name}: no namespaces"

    def _connect(self, link: str) -> None:
        pid = str(self._pause.pid)
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", pid)
        _run("ip", "link", "set", link, "master", BRIDGE, "up")
        inside = self._enter("--net")
        _run(*inside, "ip", "addr", "add", f"{self.address}/16", "dev", "eth0")
        _run(*inside, "ip", "link", "set", "eth0", "up")
        _run(*inside, "ip", "link", "set", "lo", "up")

    def _mount(
        self,
        mounts: Mapping[str, Path | None],
        read_only: Collection[str],
        programs: Collection[Path],
        *,
        is_read_only: bool,
    ) -> None:
        lines = ["set -e"]
        wanted = {path: folder for path, folder in mounts.items() if path != "/tmp"}
        # The parent exists on every machine, or was made; the folder in it does not.
        for parent in sorted({str(Path(path).parent) for path in wanted}):
            lines.append(f"mount -t tmpfs -o mode=0755 none {quote(parent)}")
        for path, folder in wanted.items():
            lines.append(f"mkdir {quote(path)}")
            if folder is not None:
                lines.append(f"mount --bind {quote(str(folder))} {quote(path)}")
            if path in read_only:
                lines.append(f"mount -o remount,bind,ro {quote(path)}")
        # What runs are folders of this machine, which may be below /tmp, or in somebody's home.
        for place in {Path("/tmp"), *filter(None, map(_closed_folder, programs))}:
            lines.append(
                f"mount -t tmpfs -o mode={1777 if place == Path('/tmp') else 755} none /mnt"
            )
            for path in sorted(each for each in programs if each.is_relative_to(place)):
                inside = quote(str("/mnt" / path.relative_to(place)))
                lines += [f"mkdir -p {inside}", f"mount --bind {quote(str(path))} {inside}"]
            lines.append(f"mount --rbind /mnt {quote(str(place))}")
        if is_read_only:
            lines.append("mount -o remount,bind,ro /")
        _run(*self._enter("--mount"), "sh", "-c", "\n".join(lines))


def _closed_folder(path: Path) -> Path | None:
    """The outermost folder around ``path`` that not everybody may enter."""
    around = reversed(path.parents)
    return next((each for each in around if not each.stat().st_mode & stat.S_IXOTH), None)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
