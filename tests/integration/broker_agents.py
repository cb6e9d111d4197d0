"""Agents of brokers as real processes, with their lines as documents."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import PATIENCE_SECONDS, POLL_SECONDS, Processes

Found = TypeVar("Found")
SESSION_MS = 5_000
SETTINGS: dict[str, object] = {"controller.session_timeout_ms": SESSION_MS}


class Agent:
    """One process run of a broker's agent. Its standard output and error go to files."""

    def __init__(self, cluster: Processes, broker_id: int, data_dir: Path, *options: str) -> None:
        self.id, self.data_dir = broker_id, data_dir
        """The first of its log directories; ``options`` may name more."""
        number = len(list(cluster.folder.glob("agent-*.out")))
        self._out = cluster.folder / f"agent-{number}.out"
        self._err = cluster.folder / f"agent-{number}.err"
        arguments = [
            "broker-agent", str(broker_id), "-o", "json",
            "--bootstrap", ",".join(cluster.addresses),
            "--listener", f"PLAINTEXT://b{broker_id}:9092",
            "--data-dir", str(data_dir), "--heartbeat-interval", "0.3", *options,
        ]  # fmt: skip
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "quorate", *arguments],
                env={**os.environ, **cluster.environment},
                stdout=out,
                stderr=err,
            )

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it has printed; a line that is being written is not there yet."""
        text = self._out.read_text()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    @property
    def errors(self) -> str:
        return self._err.read_text()

    def named(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["event"] == event]

    def until(self, what: str, find: Callable[[], Found | None]) -> Found:
        """Ask again and again; a process that has ended cannot do it any more."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            is_over = self.process.poll() is not None
            found = find()
            if found is not None and found is not False:
                return found
            if is_over or time.monotonic() > deadline:
                lines = "\n".join(map(str, self.events[-20:]))
                raise AssertionError(f"broker {self.id}, {what}: {self.errors}\n{lines}")
            time.sleep(POLL_SECONDS)

    def until_state(self, state: str) -> None:
        def find() -> bool:
            found = self.named("StateChanged")
            return bool(found) and found[-1]["state"] == state

        self.until(f"state {state}", find)

    def until_event(self, event: str, **fields: object) -> dict[str, Any]:
        """The first event with these fields, once it is there."""

        def find() -> dict[str, Any] | None:
            wanted = fields.items()
            return next(
                (
                    each
                    for each in self.named(event)
                    if all(each.get(key) == value for key, value in wanted)
                ),
                None,
            )

        return self.until(f"{event} {fields}", find)

    @property
    def epoch(self) -> int:
        """The newest registration that it has printed."""
        return int(
            self.until("a registration", lambda: self.named("Registered"))[-1]["broker_epoch"]
        )

    def folders(self) -> set[str]:
        return {each.name for each in self.data_dir.iterdir() if each.is_dir()}

    def topic_id(self, folder: str) -> str:
        text = (self.data_dir / folder / "partition.metadata").read_text()
        return text.split("topic_id: ")[1].strip()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)

    def shut_down(self) -> dict[str, Any]:
        """Stop it in an orderly manner; return its last line."""
        self.send(signal.SIGTERM)
        assert self.wait() == 0, self.errors
        return self.events[-1]


class Agents:
    """Starts agents, and leaves none behind."""

    def __init__(self, cluster: Processes, folder: Path) -> None:
        self.cluster = cluster
        self._folder = folder
        self.all: list[Agent] = []

    def start(self, broker_id: int, *options: str, data_dir: Path | None = None) -> Agent:
        path = data_dir or self._folder / f"broker-{broker_id}"
        agent = Agent(self.cluster, broker_id, path, *options)
        self.all.append(agent)
        return agent

    def active(self, *broker_ids: int) -> list[Agent]:
        started = [self.start(each) for each in broker_ids]
        for each in started:
            each.until_state("active")
        return started


def observer_of(cluster: Processes) -> LocalNode:
    """A formatted observer that nobody has started."""
    node = cluster.add_observer(max(cluster.nodes) + 1)
    cluster.format(node)
    return node


def options_of(cluster: Processes, form: str) -> list[str]:
    """The options of an agent that follows the log as a ``watch`` or an ``observer`` does."""
    return [] if form == "watch" else ["--observer", str(observer_of(cluster).config_path)]


@contextlib.contextmanager
def agents_of(cluster: Processes, folder: Path) -> Iterator[Agents]:
    """Agents with their directories below ``folder``."""
    agents = Agents(cluster, folder)
    try:
        yield agents
    except BaseException as error:
        for each in agents.all:
            lines = "\n".join(map(str, each.events[-10:]))
            error.add_note(f"---- agent of broker {each.id}\n{lines}\n{each.errors}")
        raise
    finally:
        for each in agents.all:
            if each.process.poll() is None:
                each.send(signal.SIGCONT)
                each.process.kill()
            each.process.wait()


@contextlib.contextmanager
def agents_alone(cluster: Processes, folder: Path) -> Iterator[Agents]:
    """As ``agents_of``; what brokers and topics a test leaves behind is removed."""
    with agents_of(cluster, folder) as agents:
        yield agents
    for topic in cluster.ask("topic", "list")["rows"]:
        cluster.ask("topic", "delete", topic["name"], "--yes")
    for broker in cluster.ask("broker", "list")["rows"]:
        cluster.ask("broker", "unregister", str(broker["broker_id"]), "--yes")


def create_topic(cluster: Processes, name: str, *replicas: str) -> None:
    """Create a topic; the replicas of each partition are broker ids behind one another."""
    placed = ",".join(each.replace(",", ":") for each in replicas)
    cluster.ask("topic", "create", name, "--assignment", placed)
