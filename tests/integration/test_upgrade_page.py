"""The steps of docs/operations/upgrade.md, as operators paste them, from the last release on.

Each node has a shell of its own. ``systemctl`` and ``/opt/quorate/bin/pip`` are small programs
here: one starts and stops a real process of the release that is installed for the node, the other
changes which release that is. Everything else is what the page says.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.client import LINEARIZABLE, Client
from quorate.demo.local_cluster import LocalNode
from tests.integration.kill_campaign import all_topics, written_configs
from tests.integration.older_release import MARK, SAFE_PATH, TwoReleases, mark
from tests.integration.processes import ROOT, SETTINGS
from tests.integration.write_check import (
    image_violations,
    keys_in,
    read_log,
    write_violations,
)
from tests.integration.write_load import Ledger, Load
from tests.support.last_release import checkout, last_release

pytestmark = [pytest.mark.integration, pytest.mark.long]

PAGE = ROOT / "docs/operations/upgrade.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
SECONDS_MAX = 400
LEVEL_BEFORE, LEVEL_MAX = 30, 33
"""The cluster's metadata.version: both releases support both levels; the page raises it."""

QUORATE = """#!/bin/sh
PYTHONPATH=$(readlink "$NODE_FOLDER/installed") exec {python} -m quorate "$@"
"""
PIP = """#!/bin/bash
for word; do case $word in *.whl) ln -sfn "$RELEASE" "$NODE_FOLDER/installed";; esac; done
echo "pip $*" >>"$NODE_FOLDER/steps"
"""
SYSTEMCTL = """#!/bin/bash
set -eu
echo "systemctl $*" >>"$NODE_FOLDER/steps"
[ "$2" = quorate ]
ended() {{ ! grep -q '^State:.[^Z]' "/proc/$1/status" 2>/dev/null; }}
case $1 in
start)
    cd "$NODE_FOLDER"
    PYTHONPATH=$(readlink installed) setsid nohup \\
        {python} -m quorate server --config quorate.toml >>server.log 2>&1 </dev/null &
    echo $! >pid
    ;;
stop)
    kill "$(cat "$NODE_FOLDER/pid")"
    until ended "$(cat "$NODE_FOLDER/pid")"; do sleep 0.1; done
    ;;
esac
"""


class Machines:
    """Three machines with a node each, of the last release at first."""

    def __init__(self, folder: Path) -> None:
        self.older = folder / "older"
        self.older.mkdir()
        checkout(last_release(), self.older)
        mark(self.older)
        self.cluster = TwoReleases(folder / "nodes", self.older, settings=SETTINGS)
        self._tools = folder / "bin"
        self._tools.mkdir()
        for name, text in (("quorate", QUORATE), ("pip", PIP), ("systemctl", SYSTEMCTL)):
            program = self._tools / name
            program.write_text(text.format(python=shlex.quote(sys.executable)))
            program.chmod(0o755)
        blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
        assert len(blocks) == 2
        self.one_node, self.features = blocks

    def begin(self) -> None:
        cluster = self.cluster
        for node in cluster.voters:
            cluster.configure(node)
            (node.folder / "installed").symlink_to(self.older)
            done = cluster.run_older(
                "format", "--config", str(node.config_path), "--cluster-id", cluster.cluster_id,
                "--initial-voters", cluster.initial_voters,
                "--feature", f"metadata.version={LEVEL_BEFORE}",
            )  # fmt: skip
            assert done.status == 0, done.err
            self.paste(node, "systemctl start quorate")
        cluster.until("a cluster without problems", self._is_healthy)

    def _is_healthy(self) -> bool:
        return (
            self.cluster.run("--bootstrap", ",".join(self.cluster.addresses), "health").status == 0
        )

    def paste(self, node: LocalNode, script: str, release: Path = ROOT) -> str:
        """Run a part of the page in the shell of a node; every command in it has to succeed."""
        for words, real in (
            ("n1:9190,n2:9190,n3:9190", ",".join(self.cluster.addresses)),
            ("NODE=1", f"NODE={node.id}"),
            ("/opt/quorate/bin/pip", str(self._tools / "pip")),
            ("/etc/quorate/node.toml", str(node.config_path)),
        ):
            script = script.replace(words, real)
        done = subprocess.run(
            ["bash", "-eu", "-c", script],
            env={
                **os.environ,
                "PATH": f"{self._tools}:{os.environ['PATH']}",
                "NODE_FOLDER": str(node.folder),
                "RELEASE": str(release),
                "QUORATE_BOOTSTRAP": ",".join(self.cluster.addresses),
                "GRPC_VERBOSITY": "NONE",
                **SAFE_PATH,
            },
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"node {node.id}: {done.stdout}{done.stderr}"
        return done.stdout

    def end(self) -> None:
        for node in self.cluster.voters:
            pid = node.folder / "pid"
            if pid.exists():
                try:
                    os.kill(int(pid.read_text()), signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def release_of(self, node: LocalNode) -> Path:
        """Where the process of a node has its code from."""
        pid = (node.folder / "pid").read_text().strip()
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        (path,) = (each for each in environment if each.startswith(b"PYTHONPATH="))
        return Path(path.decode().partition("=")[2])

    def level(self) -> int:
        rows = self.cluster.ask("feature", "describe")["rows"]
        (found,) = (each for each in rows if each["feature"] == "metadata.version")
        return int(found["finalized"])

    def logs(self) -> str:
        return "\n".join(f"---- node {node.id}\n{node.log_tail()}" for node in self.cluster.voters)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    machines = Machines(tmp_path)
    try:
        machines.begin()
        yield machines
    except BaseException as error:
        error.add_note(machines.logs())
        raise
    finally:
        machines.end()


async def upgrade_under_load(machines: Machines, ledger: Ledger) -> None:
    """Follow the page: upgrade every node, take one back and upgrade it again, raise the level."""
    cluster = machines.cluster
    load = Load(cluster.addresses, cluster.cluster_id, ledger, seed=1)
    await load.prepare()
    writing = asyncio.create_task(load.run())
    try:
        for node, release in (
            *((each, ROOT) for each in cluster.voters),
            (cluster.voters[1], machines.older),
            (cluster.voters[1], ROOT),
        ):
            before = ledger.acknowledged
            await asyncio.to_thread(machines.paste, node, machines.one_node, release)
            assert machines.release_of(node) == release
            assert ledger.acknowledged > before, "clients waited while a node was upgraded"
        assert await asyncio.to_thread(machines.level) == LEVEL_BEFORE
        described = await asyncio.to_thread(machines.paste, cluster.voters[0], machines.features)
        assert "metadata.version" in described
        assert await asyncio.to_thread(machines.level) == LEVEL_MAX
        load.stop()
        await writing
        async with Client(cluster.addresses, client_id="check") as client:
            topics = await all_topics(client, LINEARIZABLE)
            configs = await written_configs(client, load.topics, LINEARIZABLE)
        ledger.faults += image_violations(ledger, topics, configs)
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await load.client.close()


def test_nodes_are_upgraded_as_the_page_says(machines: Machines) -> None:
    ledger = Ledger()
    asyncio.run(upgrade_under_load(machines, ledger))
    for node in machines.cluster.voters:
        machines.paste(node, "systemctl stop quorate")
        assert node.log_path.read_text().rstrip().splitlines()[-1].count("event=stopped") == 1
    marks = [node.log_path.read_text().count(MARK) for node in machines.cluster.voters]
    assert marks == [1, 2, 1], "node 2 was taken back once"
    logs = {node.id: read_log(node.data_dir, 1 << 62) for node in machines.cluster.voters}
    records = {offset: each for log in logs.values() for offset, each in log.records.items()}
    found = keys_in(value for _, (_, value) in sorted(records.items()))
    ledger.faults += write_violations(ledger, found, where="the log")
    print(f"{ledger.acknowledged} acknowledged writes, {ledger.counts()}")
    # A call that returns late is the client's affair, not that of an upgrade.
    assert [each for each in ledger.faults if "hung for" not in each] == []
    steps = (machines.cluster.voters[0].folder / "steps").read_text().splitlines()
    assert [each.partition("/")[0] for each in steps] == [
        "systemctl start quorate", "systemctl stop quorate",
        "pip install --require-hashes -r requirements.lock",
        "pip install --no-deps quorate-*.whl",
        "systemctl start quorate", "systemctl stop quorate",
    ]  # fmt: skip
