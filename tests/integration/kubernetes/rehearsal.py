"""A cluster on Kubernetes, under a client that writes; run inside of ``sandbox.ENTER``.

``python -m tests.integration.kubernetes.rehearsal FOLDER``: FOLDER has the rendered objects as
installed.json, upgraded.json and larger.json. Prints what happened as one JSON document.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from quorate.client.client import Client
from quorate.client.log_consumer import ResetPolicy
from quorate.client.queries import LINEARIZABLE
from quorum.log_position import LogPosition
from tests.integration.kill_campaign import all_topics, written_configs
from tests.integration.kubernetes.controller import Controller
from tests.integration.kubernetes.kubelet import _environment
from tests.integration.kubernetes.pod_template import PodSet, pod_set
from tests.integration.kubernetes.sandbox import make_network
from tests.integration.write_check import image_violations, keys_in, write_violations
from tests.integration.write_load import Ledger, Load
from tests.support.chart import CLUSTER_ID

CLIENT_PORT = 9190
PROGRESS_WRITES = 20
PROGRESS_SECONDS_MAX = 60.0
_PAUSE_S = 0.05


class Rehearsal:
    """Each method is one thing that people do to a cluster; writes go on meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.controller = Controller(self._rendered("installed"), folder)
        self.ledger = Ledger()
        self.steps: dict[str, int] = {}
        self.waits: dict[str, float] = {}
        self.voters: list[list[int]] = []

    def _rendered(self, name: str) -> PodSet:
        return pod_set(json.loads((self._folder / f"{name}.json").read_text()))

    @property
    def addresses(self) -> list[str]:
        pods = self.controller.wanted.pods[: self.controller.wanted.initial_voters]
        return [f"{pod.host_name}:{CLIENT_PORT}" for pod in pods]

    async def run(self) -> dict[str, Any]:
        """Everything, in order; what came of it."""
        await self._step("first start", self._install)
        load = Load(self.addresses, CLUSTER_ID, self.ledger, seed=1, config_writers=3)
        await load.prepare()
        writing = asyncio.create_task(load.run())
        try:
            for name, act in (
                ("lost pod of a follower", self._lose_follower),
                ("lost pod of the leader", self._lose_leader),
                ("rolling update", self._roll),
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
        self.controller.roll(upgraded)

    def _grow(self) -> None:
        """As docs/operations/kubernetes.md says: an observer first, then a voter."""
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
        """``quorate quorum ARGUMENTS`` in a pod, as with kubectl exec."""
        pod = self.controller.running[0]
        done = subprocess.run(
            pod.sandbox.command(["quorate", "-o", "json", "quorum", *arguments]),
            env=_environment(pod.pod.main),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

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
        async with Client(self.addresses, client_id="check") as client:
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
    make_network(folder)
    found = asyncio.run(Rehearsal(folder).run())
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
