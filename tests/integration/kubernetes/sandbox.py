"""A pod's network and file system on this machine: a namespace of its own, and an address.

Everything happens inside of namespaces that ``ENTER`` makes, so it needs no root, and nothing of it
is left when their first process ends. The bridge is the pods' network; the process that calls this
stands for the kubelet and every other pod, and reaches all of them. Names are lines of /etc/hosts.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

ROOT = Path(__file__).resolve().parents[3]
ENTER = (
    "unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child",
    "--mount-proc",
)  # fmt: skip
"""Command that runs the rest in namespaces of its own. When that ends, all in them does."""
BRIDGE = "pods"
BRIDGE_ADDRESS = "10.244.0.1"
PATIENCE_S = 30.0

_places = itertools.count(2)


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

    def __init__(self, name: str, mounts: Mapping[str, Path | None], *, is_read_only: bool) -> None:
        """``mounts``: folders by path in the pod; None is an empty one that ends with the pod."""
        place = next(_places)
        self.name = name
        self.address = f"10.244.{place // 250}.{place % 250 + 2}"
        self._pause = subprocess.Popen(
            ["unshare", "--net", "--mount", "sleep", "infinity"], stdin=subprocess.DEVNULL
        )
        self._wait_for_namespaces()
        self._connect(f"veth{place}")
        self._mount(mounts, is_read_only=is_read_only)

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

    def _mount(self, mounts: Mapping[str, Path | None], *, is_read_only: bool) -> None:
        lines = ["set -e"]
        for path, folder in mounts.items():
            if path == "/tmp":
                continue
            # The parent exists on every machine, the folder in it does not.
            parent = quote(str(Path(path).parent))
            lines += [f"mount -t tmpfs none {parent}", f"mkdir {quote(path)}"]
            if folder is not None:
                lines.append(f"mount --bind {quote(str(folder))} {quote(path)}")
        # What runs is the checkout, which may be below /tmp.
        kept = {str(each) for each in (ROOT, Path(sys.prefix).resolve()) if _is_below_tmp(each)}
        lines.append("mount -t tmpfs none /mnt")
        for path in sorted(kept):
            inside = quote(f"/mnt/{path[5:]}")
            lines += [f"mkdir -p {inside}", f"mount --bind {quote(path)} {inside}"]
        lines.append("mount --rbind /mnt /tmp")
        if is_read_only:
            lines.append("mount -o remount,bind,ro /")
        _run(*self._enter("--mount"), "sh", "-c", "\n".join(lines))


def _is_below_tmp(path: Path) -> bool:
    return path.is_relative_to("/tmp")


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
