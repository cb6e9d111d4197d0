"""A cluster on Kubernetes, under a client that writes; run inside of ``sandbox.enter()``.

``python -m tests.integration.kubernetes.rehearsal FOLDER``: FOLDER has the rendered objects as
installed.json, upgraded.json and larger.json, in images.json the folder of each image's release,
and what the ``Workstation`` has made. Prints what happened as one JSON document. With
installed.json alone a cluster is installed, asked and stopped.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from pathlib import Path
from typing import Any

import grpc

from quorate.client import BROKER, UnavailableError
from quorate.client.client import Client
from quorate.client.log_consumer import ResetPolicy
from quorate.client.queries import LINEARIZABLE
from quorum.log_position import LogPosition
from tests.integration.kill_campaign import all_topics, written_configs
from tests.integration.kubernetes.controller import Controller
from tests.integration.kubernetes.pod_template import PodSet, pod_set
from tests.integration.kubernetes.prometheus import scraper, scrapes
from tests.integration.kubernetes.sandbox import make_folders, make_network
from tests.integration.kubernetes.workstation import Workstation, script
from tests.integration.older_release import MARK
from tests.integration.write_check import image_violations, keys_in, write_violations
from tests.integration.write_load import Ledger, Load
from tests.support.chart import CLUSTER_ID

CLIENT_PORT = 9190
PROGRESS_WRITES = 20
PROGRESS_SECONDS_MAX = 60.0
FEATURE = "metadata.version"
LEVEL_BEFORE = 30
"""What the cluster is at until it is upgraded, as if an even older release had made it."""
REFUSED_SECONDS = 2.0
"""How long a client tries that nobody may answer."""
_PAUSE_S = 0.05


class Rehearsal:
    """Each method is one thing that people do to a cluster; writes go on meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workstation = Workstation(folder)
        self.is_secured = self._workstation.certificate()[0].exists()
        self.controller = Controller(self._rendered("installed"), folder, self._workstation.secrets)
        self.ledger = Ledger()
        self.steps: dict[str, int] = {}
        self.waits: dict[str, float] = {}
        self.voters: list[list[int]] = []
        self.levels: list[int] = []
        self.unready_in_update = 0
        self.older_starts: list[dict[str, int]] = []
        self.rights: dict[str, str] = {}
        self.keys: list[str] = []
        self.scrapes: list[dict[str, int]] = []

    def _objects(self, name: str) -> Any:
        return json.loads((self._folder / f"{name}.json").read_text())

    def _rendered(self, name: str) -> PodSet:
        images = json.loads((self._folder / "images.json").read_text())
        return pod_set(
            self._objects(name),
            {image: Path(release) for image, release in images.items()},
        )

    @property
    def _credentials(self) -> grpc.ChannelCredentials | None:
        """The administrator's; None where nothing is encrypted."""
        if not self.is_secured:
            return None
        files = self._workstation.certificate()
        return grpc.ssl_channel_credentials(*(each.read_bytes() for each in files))

    @property
    def is_short(self) -> bool:
        return not (self._folder / "upgraded.json").exists()

    def parents(self) -> set[str]:
        """Folders that volumes are mounted in."""
        names = ["installed"] if self.is_short else ["installed", "upgraded"]
        sets = [self._rendered(each) for each in names]
        return {str(Path(path).parent) for each in sets for path in each.pods[0].mounts}

    @property
    def addresses(self) -> list[str]:
        pods = self.controller.wanted.pods[: self.controller.wanted.initial_voters]
        return [f"{pod.host_name}:{CLIENT_PORT}" for pod in pods]

    async def run(self) -> dict[str, Any]:
        """Everything, in order; what came of it."""
        await self._step("first start", self._install)
        load = Load(
            self.addresses, CLUSTER_ID, self.ledger, seed=1, config_writers=3,
            credentials=self._credentials,
        )  # fmt: skip
        await load.prepare()
        writing = asyncio.create_task(load.run())
        try:
            for name, act in (
                ("lost pod of a follower", self._lose_follower),
                ("lost pod of the leader", self._lose_leader),
                ("rolling update", self._roll),
                ("feature level raised", self._raise_level),
                *((("certificate renewed", self._renew),) if self.is_secured else ()),
                ("one voter more", self._grow),
                ("one voter less", self._shrink),
            ):
                await self._step(name, act)
            load.stop()
            await writing
            violations = await self._violations(load.topics)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await load.client.close()
        self._quorum("transfer-leader", str(max(self.controller.running)))
        restarts = {pod.pod.name: pod.restarts for pod in self.controller.running.values()}
        await asyncio.to_thread(self.controller.stop_all)
        return {
            "acknowledged": self.ledger.acknowledged,
            "acknowledged_by_step": self.steps,
            "longest_wait_s": round(max(self.ledger.waits), 3),
            "longest_wait_s_by_step": self.waits,
            "violations": violations,
            "restarts": restarts,
            "exit_codes": self.controller.statuses,
            "before_stops": self.controller.pre_stops,
            "voters": self.voters,
            "unready_max": self.unready_in_update,
            "events": self.controller.events,
            "levels": self.levels,
            "older_starts": self.older_starts,
            "rights": self.rights,
            "keys": self.keys,
            "scrapes": self.scrapes,
        }

    async def run_short(self) -> dict[str, Any]:
        """Install, write, scrape and stop; what came of it."""
        await asyncio.to_thread(self._install)
        async with Client(self.addresses, credentials=self._credentials) as client:
            await client.set_config(BROKER, "", "log.retention.ms", "1")
        refusal = ""
        try:
            async with Client(self.addresses, timeout_seconds=REFUSED_SECONDS) as client:
                await client.set_config(BROKER, "", "log.retention.ms", "2")
        except UnavailableError as error:
            refusal = str(error)
        self._scrape("installed")
        self._quorum("transfer-leader", str(max(self.controller.running)))
        await asyncio.to_thread(self.controller.stop_all)
        return {
            "voters": self.voters,
            "refusal": refusal,
            "scrapes": self.scrapes,
            "exit_codes": self.controller.statuses,
            "before_stops": self.controller.pre_stops,
        }

    async def _step(self, name: str, act: Any) -> None:
        before = self.ledger.acknowledged
        await asyncio.to_thread(act)
        if self.ledger.acknowledged:
            await self._progress(name)
        self.steps[name] = self.ledger.acknowledged - before
        self.waits[name] = round(max(self.ledger.waits[before:], default=0.0), 3)

    def _install(self) -> None:
        self.controller.create_all()
        self.controller.wait_available(*self.controller.running)
        self.voters.append(self._voters())
        pod = self.controller.running[0]
        rights = pod.rights()
        self.rights = {name: rights[name].strip() for name in ("Uid", "Gid", "Groups", "CapEff")}
        if self.is_secured:
            seen = (
                "cd /etc/quorate/tls && stat -c '%A %u:%g' voter-0.key && stat -Lc '%A %u:%g' *.key"
            )
            self.keys = pod.execute(["sh", "-c", seen]).stdout.splitlines()
        self._quorate("feature", "downgrade", f"{FEATURE}={LEVEL_BEFORE}", "--yes")
        self.levels.append(self._levels()[0])

    def _lose_follower(self) -> None:
        self._lose(next(each for each in self.controller.running if each != self._leader()))

    def _lose_leader(self) -> None:
        self._lose(self._leader())

    def _lose(self, ordinal: int) -> None:
        self.controller.lose(ordinal)
        self.controller.wait_available(ordinal)

    def _roll(self) -> None:
        upgraded = self._rendered("upgraded")
        assert upgraded.pods[0] != self.controller.wanted.pods[0], "nothing is upgraded"
        assert upgraded.pods[0].main.release != self.controller.wanted.pods[0].main.release
        self.older_starts.append(self._older_starts())
        self.controller.roll(upgraded)
        self.unready_in_update = self.controller.unready_max
        self.older_starts.append(self._older_starts())
        self._scrape("upgraded")

    def _scrape(self, name: str) -> None:
        """Every node's metrics, as the ServiceMonitor has them scraped, and in other ways."""
        way = scraper(self._objects(name), self._workstation.secrets)
        self.scrapes = [scrapes(way, pod.address) for pod in self.controller.running.values()]

    def _raise_level(self) -> None:
        """As docs/operations/upgrade.md says, when all nodes run the new release."""
        before, highest = self._levels()
        self._quorate("feature", "upgrade", f"{FEATURE}={highest}", "--dry-run")
        self._quorate("feature", "upgrade", f"{FEATURE}={highest}", "--reason", "all are new")
        self.levels += [before, self._levels()[0], highest]

    def _renew(self) -> None:
        """As docs/operations/kubernetes.md says; every port of the node has the new one soon."""
        pod = self.controller.running[0]
        ports = (CLIENT_PORT, pod.pod.main.probes["readiness"].port)
        before = [ssl.get_server_certificate((pod.address, port)) for port in ports]
        self._workstation.paste(script("Renew certificates"))
        self.controller.refresh_secrets()
        renewed = self._workstation.certificate("voter-0")[2].read_text()
        assert renewed not in before
        deadline = time.monotonic() + PROGRESS_SECONDS_MAX
        while {ssl.get_server_certificate((pod.address, port)) for port in ports} != {renewed}:
            assert time.monotonic() < deadline, "the node has the old certificate"
            time.sleep(_PAUSE_S)

    def _grow(self) -> None:
        """As docs/operations/kubernetes.md says: an observer first, then a voter."""
        if self.is_secured:
            self._workstation.paste(script("Scale up by one"))
            self.controller.refresh_secrets()
        larger = self._rendered("larger")
        new = larger.pods[-1]
        self.controller.scale(larger)
        self.controller.wait_available(new.ordinal)
        assert new.ordinal not in self._voters()
        self._quorum("add-voter", str(new.ordinal), "--at", f"{new.host_name}:{CLIENT_PORT}")
        self.voters.append(self._voters())

    def _shrink(self) -> None:
        self._quorum("remove-voter", str(len(self.controller.wanted.pods) - 1))
        self.voters.append(self._voters())
        self.controller.scale(self._rendered("upgraded"))

    # ------------------------------------------------------------------ looking

    def _quorum(self, *arguments: str) -> Any:
        return self._quorate("quorum", *arguments)

    def _quorate(self, *arguments: str) -> Any:
        """``quorate ARGUMENTS`` in a pod, as with kubectl exec."""
        done = self.controller.running[0].execute(["quorate", "-o", "json", *arguments])
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def _levels(self) -> tuple[int, int]:
        """The present level, and the highest one that the node supports which answers."""
        rows = self._quorate("feature", "describe")["rows"]
        (found,) = (each for each in rows if each["feature"] == FEATURE)
        return int(found["finalized"]), int(found["supported_max"])

    def _older_starts(self) -> dict[str, int]:
        """How many processes of each pod have loaded the older release."""
        return {
            pod.pod.name: pod.log_path.read_text(errors="replace").count(MARK)
            for pod in self.controller.running.values()
        }

    def _voters(self) -> list[int]:
        status = self._quorum("describe", "status")
        return sorted(each["id"] for each in status["current_voters"])

    def _leader(self) -> int:
        return int(self._quorum("describe", "status")["leader_id"])

    async def _progress(self, when: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PROGRESS_SECONDS_MAX
        wanted = self.ledger.acknowledged + PROGRESS_WRITES
        while self.ledger.acknowledged < wanted:
            assert loop.time() < deadline, f"no writes after: {when}"
            await asyncio.sleep(_PAUSE_S)

    async def _violations(self, config_topics: list[str]) -> list[str]:
        """What a client that knows nothing reads, against what was acknowledged."""
        async with Client(
            self.addresses, client_id="check", credentials=self._credentials
        ) as client:
            # Any pod may answer, and one that follows may lack the last acknowledged write.
            topics = await all_topics(client, LINEARIZABLE)
            configs = await written_configs(client, config_topics, LINEARIZABLE)
            consumer = client.consumer(reset=ResetPolicy.NONE, position=LogPosition(0))
            values: list[bytes] = []
            position = consumer.position
            while position is None or not position.offset >= consumer.high_watermark > 0:
                values += [record.value or b"" for record in await consumer.poll(max_wait_ms=0)]
                position = consumer.position
        return [
            *image_violations(self.ledger, topics, configs),
            *write_violations(self.ledger, keys_in(values), where="the log"),
            *self.ledger.faults,
        ]


def main() -> int:
    folder = Path(sys.argv[1])
    rehearsal = Rehearsal(folder)
    make_folders(rehearsal.parents())
    make_network(folder)
    found = asyncio.run(rehearsal.run_short() if rehearsal.is_short else rehearsal.run())
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
