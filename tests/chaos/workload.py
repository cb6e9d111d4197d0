"""Clients that write and read at all consistency levels, and record the answers.

Each worker has one operation at a time. All workers share a few keys, so that they conflict. A key
is replaced by a new one after a while, because the cost of checking grows with a key's history.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

from history.operation import Action, Level, Operation, Value
from history.recorder import Recorder
from quorate.client.client import Client
from quorate.client.errors import (
    ClientError,
    OutcomeUnknownError,
    RefusedError,
    UnavailableError,
)
from quorum.v1 import commands_pb2 as wire
from tests.chaos.cluster import ChaosCluster
from tests.chaos.patience import within
from tests.chaos.requests import CONFIGS, METRICS, TOPIC, command, read, resource, written

WORKERS = 160
CLIENTS = 8
KEYS = {TOPIC: 27, METRICS: 27}
KEY_OPERATIONS_MAX = 300
READ_SHARE = 0.5
TIMEOUT_SECONDS = 10.0
SHORT_TIMEOUT_SECONDS = (0.02, 0.5)
SHORT_SHARE = 0.1
PAUSE_SECONDS = 0.05
HANG_SECONDS = 5.0
"""Seconds that a call may exceed its deadline before it counts as hanging."""


class Keys:
    """The number of uses of each key in use."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._count = 0
        self._used: Counter[str] = Counter()
        self.ids: dict[str, str] = {}
        """The newest known id of each topic."""
        self._present = [self._fresh(sort) for sort, count in KEYS.items() for _ in range(count)]

    def draw(self) -> str:
        place = self._rng.randrange(len(self._present))
        key = self._present[place]
        self._used[key] += 1
        if self._used[key] >= KEY_OPERATIONS_MAX:
            self._present[place] = self._fresh(resource(key)[0])
        return key

    def in_use(self) -> list[str]:
        return list(self._present)

    def _fresh(self, sort: str) -> str:
        self._count += 1
        return f"{sort}k{self._count}"


class Work:
    """All workers of a run. ``faults`` are problems that must never occur."""

    def __init__(self, cluster: ChaosCluster, recorder: Recorder, seed: int) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._rng = random.Random(seed)
        self._keys = Keys(self._rng)
        self._is_stopping = False
        self._newest = 0
        self._count = 0
        self.acknowledged = 0
        self.faults: list[str] = []
        self.clients = [self._client(place) for place in range(CLIENTS)]

    def _client(self, place: int) -> Client:
        addresses: Sequence[str] = self._cluster.addresses
        first = place % len(addresses)
        return Client(
            [*addresses[first:], *addresses[:first]],
            client_id=f"c{place}",
            timeout_seconds=TIMEOUT_SECONDS,
        )

    def stop(self) -> None:
        """Make each worker end after its present call."""
        self._is_stopping = True

    async def run(self) -> None:
        """Work until stopped."""
        async with asyncio.TaskGroup() as group:
            for place in range(WORKERS):
                group.create_task(self._worker(place))

    async def look_at_everything(self) -> None:
        """Read every key in use once, linearizably."""
        for key in self._keys.in_use():
            await self._read("last", self.clients[0], key, Level.LINEARIZABLE)

    async def close(self) -> None:
        for client in self.clients:
            await client.close()

    async def _worker(self, place: int) -> None:
        client = self.clients[place % CLIENTS]
        name = f"w{place}"
        while not self._is_stopping:
            key = self._keys.draw()
            if self._rng.random() < READ_SHARE:
                await self._read(name, client, key, self._rng.choice(list(Level)))
            else:
                await self._write(name, client, key)
            await asyncio.sleep(self._rng.uniform(0, 2 * PAUSE_SECONDS))

    # ------------------------------------------------------------------ writing

    async def _write(self, name: str, client: Client, key: str) -> None:
        self._count += 1
        mark = f"{name}-{self._count}"
        action, arguments = self._draw_write(key, mark)
        operation = self._recorder.begin(name, key, action, arguments, mark=mark)
        timeout = self._timeout()
        try:
            applied = await within(
                timeout + HANG_SECONDS,
                client.write(
                    command(operation),
                    timeout=timeout,
                    origin=wire.CommandOrigin(request_id=mark),
                ),
            )
        except (OutcomeUnknownError, TimeoutError) as error:
            self._recorder.unknown(operation)
            if isinstance(error, TimeoutError):
                self.faults.append(f"{mark}: exceeded its deadline of {timeout:.1f} s")
        except UnavailableError:
            self._recorder.failed(operation, "")
        except RefusedError as error:
            self._recorder.failed(operation, error.code_name)
        else:
            result = written(operation, applied)
            self._recorder.ok(operation, offset=applied.offset, epoch=applied.epoch, result=result)
            self.acknowledged += 1
            self._newest = max(self._newest, applied.offset)
            if "topic_id" in result:
                self._keys.ids[key] = str(result["topic_id"])

    def _draw_write(self, key: str, mark: str) -> tuple[Action, dict[str, Value]]:
        sort, _ = resource(key)
        roll = self._rng.random()
        if sort == TOPIC:
            if roll < 0.3:
                return Action.CREATE, {"partitions": self._rng.randint(1, 3)}
            if roll < 0.4:
                known = self._keys.ids.get(key)
                by_id = known is not None and self._rng.random() < 0.5
                return Action.DELETE, {"topic_id": known} if by_id else {}
            if roll < 0.5:
                return Action.GROW, {"partitions": self._rng.randint(2, 8)}
        route = "append" if sort == METRICS and roll < 0.4 else "set"
        return Action.ALTER, {"changes": [[CONFIGS[sort], route, mark]]}

    def _timeout(self) -> float:
        if self._rng.random() < SHORT_SHARE:
            return self._rng.uniform(*SHORT_TIMEOUT_SECONDS)
        return TIMEOUT_SECONDS

    # ------------------------------------------------------------------ reading

    async def _read(self, name: str, client: Client, key: str, level: Level) -> None:
        wanted = -1
        if level is Level.AT_LEAST:
            wanted = max(0, self._newest - self._rng.choice((0, 0, 0, 1, 50)))
        operation = self._recorder.begin(name, key, Action.READ, level=level, at_least=wanted)
        before = self._sessions()
        try:
            position, seen = await within(
                TIMEOUT_SECONDS + HANG_SECONDS,
                read(client, operation, configs=self._rng.random() < 0.5),
            )
        except ClientError as error:
            self._recorder.failed(operation, type(error).__name__)
        except TimeoutError:
            self._recorder.failed(operation, "hung")
            self.faults.append(f"read {operation.number}: exceeded its deadline")
        else:
            self._finish_read(operation, before, position, seen)

    def _finish_read(self, operation: Operation, before: dict[int, str], position, seen) -> None:
        session = self._cluster.session(position.node_id)
        if before.get(position.node_id) != session:
            # The process ended meanwhile: the run before or after may have answered.
            session = ""
        self._recorder.ok(
            operation,
            offset=position.offset,
            epoch=position.epoch,
            result=seen,
            session=session,
        )
        self._newest = max(self._newest, position.offset)

    def _sessions(self) -> dict[int, str]:
        return {node.id: self._cluster.session(node.id) for node in self._cluster.voters}
