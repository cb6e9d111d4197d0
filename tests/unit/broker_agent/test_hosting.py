"""Log directories of an agent's process, what is hosted in them, and what it prints."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from quorate.broker_agent.commands import CommandTag, HostedState, LeaderAndIsr, TopicStates
from quorate.broker_agent.directory_reports import REPLICAS_PER_REQUEST_MAX, DirectoryReports
from quorate.broker_agent.errors import HostingError
from quorate.broker_agent.generation import stray_replicas
from quorate.broker_agent.handler import HostedReplica, Registered
from quorate.broker_agent.hosting import HostingHandler
from quorate.broker_agent.log_directory import LogDirectory
from quorate.cli.agent_lines import line_of
from quorate.client.results.commands import AssignReplicasToDirsResult
from quorum.types import Uuid, uuid_to_text
from quorum.v1 import commands_pb2
from statemachine.sections.cluster import DIRECTORY_UNASSIGNED
from statemachine.sections.partitions import PartitionState

BROKER = 7
ORDERS, BILLS = bytes([1]) * 16, bytes([2]) * 16


def opened(path: Path, broker_id: int = BROKER, cluster_id: str = "lab") -> LogDirectory:
    return LogDirectory(path, cluster_id, broker_id)


def command(
    *keys: tuple[Uuid, str, int],
    directory: Uuid = DIRECTORY_UNASSIGNED,
    is_full: bool = False,
    cordoned: tuple[Uuid, ...] = (),
) -> LeaderAndIsr:
    topics: dict[Uuid, TopicStates] = {}
    state = PartitionState((BROKER, 8), (BROKER,), leader=BROKER, directories=(directory,) * 2)
    for topic_id, name, number in keys:
        known = topics.get(topic_id, TopicStates(name, {}))
        hosted = {**known.partitions, number: HostedState(state, is_new=True)}
        topics[topic_id] = TopicStates(name, hosted)
    return LeaderAndIsr(CommandTag(5, 1, 10), topics, {}, is_full, cordoned)


# ------------------------------------------------------------------ one directory


def test_a_directory_keeps_its_id_and_belongs_to_one_broker(tmp_path: Path) -> None:
    directory = opened(tmp_path / "new" / "d")
    with pytest.raises(HostingError, match="in use by another process"):
        opened(tmp_path / "new" / "d")
    directory.close()
    again = opened(tmp_path / "new" / "d")
    assert again.id == directory.id
    again.close()
    with pytest.raises(HostingError, match="belongs to node 7, not to node 8"):
        opened(tmp_path / "new" / "d", 8)
    with pytest.raises(HostingError, match="belongs to cluster lab, not to cluster other"):
        opened(tmp_path / "new" / "d", cluster_id="other")
    # A refusal leaves no lock behind.
    opened(tmp_path / "new" / "d").close()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostingError, match="log directory"):
        opened(tmp_path / "file")


def test_replicas_are_found_again_by_their_topic_id(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.host("orders", 0, ORDERS)
    directory.host("a-b-1", 12, BILLS)
    directory.host("orders", 0, ORDERS)
    with pytest.raises(HostingError, match=f"topic id {uuid_to_text(ORDERS)}, not of"):
        directory.host("orders", 0, BILLS)
    # What is no replica: somebody else's folder, and one that a crash has left.
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "bills-3").mkdir()
    assert list(directory.replicas()) == [
        HostedReplica(BILLS, 12, "a-b-1", directory.id),
        HostedReplica(ORDERS, 0, "orders", directory.id),
    ]
    directory.host("bills", 3, BILLS)
    assert len(list(directory.replicas())) == 3
    assert (tmp_path / "orders-0" / "partition.metadata").read_text() == (
        f"version: 0\ntopic_id: {uuid_to_text(ORDERS)}\n"
    )
    directory.close()


def test_a_folder_with_files_of_others_stays_and_is_no_replica(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for number in (0, 1):
        directory.host("orders", number, ORDERS)
    (tmp_path / "orders-1" / "data").write_text("of somebody")
    assert directory.delete("orders", 0)
    assert not directory.delete("orders", 1)
    assert (tmp_path / "orders-1" / "data").exists()
    assert list(directory.replicas()) == []
    assert directory.delete("orders", 9)
    directory.close()


@pytest.mark.parametrize("name", ["../escape", "a/b", "", "x" * 250])
def test_a_name_cannot_leave_the_directory(tmp_path: Path, name: str) -> None:
    directory = opened(tmp_path / "d")
    with pytest.raises(HostingError, match="no name for a folder"):
        directory.host(name, 0, ORDERS)
    directory.close()
    assert [each.name for each in tmp_path.iterdir()] == ["d"]


def test_the_mark_of_a_clean_shutdown(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    assert directory.clean_shutdown_epoch() == -1
    directory.mark_clean_shutdown(42)
    assert directory.clean_shutdown_epoch() == 42
    directory.forget_clean_shutdown()
    directory.forget_clean_shutdown()
    assert directory.clean_shutdown_epoch() == -1
    (tmp_path / ".kafka_cleanshutdown").write_text("no json")
    assert directory.clean_shutdown_epoch() == -1
    directory.close()


# ------------------------------------------------------------------ the handler


class Hosting:
    """A handler over two directories, and what it shows."""

    def __init__(self, folder: Path) -> None:
        self.shown: list[Any] = []
        self.folder = folder
        self.directories = [opened(folder / name) for name in ("a", "b")]
        self.handler = HostingHandler(BROKER, self.directories, self.shown.append)

    def host(self, each: LeaderAndIsr) -> None:
        asyncio.run(self.handler.leader_and_isr(each))

    def folders(self, name: str) -> set[str]:
        return {each.name for each in (self.folder / name).iterdir() if each.is_dir()}

    def close(self) -> None:
        for each in self.directories:
            each.close()


def test_replicas_spread_over_directories_that_take_them(tmp_path: Path) -> None:
    hosting = Hosting(tmp_path)
    hosting.host(command(*[(ORDERS, "orders", n) for n in range(4)]))
    assert [len(hosting.folders(name)) for name in "ab"] == [2, 2]
    first, second = (each.id for each in hosting.directories)
    hosting.host(command((BILLS, "bills", 0), (BILLS, "bills", 1), cordoned=(first,)))
    assert hosting.folders("b") >= {"bills-0", "bills-1"}
    hosting.host(command((BILLS, "bills", 2), cordoned=(first, second)))
    assert "bills-2" in hosting.folders("a")
    hosting.host(command((BILLS, "bills", 3), directory=first, cordoned=(first,)))
    assert hosting.handler.directory_of(BILLS, 3) == first
    assert hosting.handler.directory_of(BILLS, 9) is None
    hosting.close()


def test_strays_are_deleted_and_a_restart_finds_the_rest(tmp_path: Path) -> None:
    hosting = Hosting(tmp_path)
    hosting.host(command((ORDERS, "orders", 0), (BILLS, "bills", 0)))
    hosting.close()
    again = Hosting(tmp_path)
    hosted = again.handler.hosted()
    assert {(each.topic_name, each.topic_id) for each in hosted} == {
        ("orders", ORDERS), ("bills", BILLS),
    }  # fmt: skip
    full = command((bytes([3]) * 16, "orders", 0), (BILLS, "bills", 0), is_full=True)
    strays = stray_replicas(
        full, [((each.topic_id, each.partition), each.topic_name) for each in hosted]
    )
    assert strays is not None
    asyncio.run(again.handler.stop_replica(strays))
    again.host(full)
    names = [(each.topic_name, each.topic_id) for each in again.handler.hosted()]
    assert names == [("bills", BILLS), ("orders", bytes([3]) * 16)]
    again.close()


def test_a_registration_ends_the_mark_of_the_shutdown_before_it(tmp_path: Path) -> None:
    hosting = Hosting(tmp_path)
    for each in hosting.directories:
        each.mark_clean_shutdown(4)
    hosting.handler.report(Registered(5))
    assert [each.clean_shutdown_epoch() for each in hosting.directories] == [-1, -1]
    assert hosting.shown == [{"event": "Registered", "broker_id": BROKER, "broker_epoch": 5}]
    hosting.close()


# ------------------------------------------------------------------ reports


def test_what_is_in_another_directory_is_reported_until_it_is_known() -> None:
    here, there = bytes([8]) * 16, bytes([9]) * 16
    held = {(ORDERS, 0): here, (ORDERS, 1): there, (BILLS, 0): here}
    reports = DirectoryReports(BROKER)
    assert reports.request(5) is None
    keys = [(ORDERS, "orders", 0), (ORDERS, "orders", 1), (BILLS, "bills", 0)]
    reports.compare(command(*keys), lambda *key: held.get(key))
    request = reports.request(5)
    assert request is not None
    assert (request.broker_id, request.broker_epoch) == (BROKER, 5)
    assert {
        (each.directory_id, topic.topic_id, *topic.partitions)
        for each in request.directories
        for topic in each.topics
    } == {(here, ORDERS, 0), (here, BILLS, 0), (there, ORDERS, 1)}
    # One was accepted, one refused: neither is said again. The third had no answer.
    answer = commands_pb2.AssignReplicasToDirsResult()
    answered = answer.directories.add(directory_id=here)
    answered.topics.add(topic_id=ORDERS).partitions.add(partition=0)
    answered.topics.add(topic_id=BILLS).partitions.add(partition=0, error_code=3)
    reports.take(AssignReplicasToDirsResult.of(answer))
    left = reports.request(5)
    assert left is not None
    assert [each.directory_id for each in left.directories] == [there]
    # The metadata names it now.
    reports.compare(command((ORDERS, "orders", 1), directory=there), lambda *key: held.get(key))
    assert reports.request(5) is None


def test_a_full_command_begins_the_reports_anew_and_requests_have_a_bound() -> None:
    here = bytes([8]) * 16
    many = [(ORDERS, "orders", n) for n in range(REPLICAS_PER_REQUEST_MAX + 1)]
    reports = DirectoryReports(BROKER)
    reports.compare(command(*many), lambda *_: here)
    request = reports.request(5)
    assert request is not None
    assert len(request.directories[0].topics[0].partitions) == REPLICAS_PER_REQUEST_MAX
    reports.compare(command(is_full=True), lambda *_: here)
    assert reports.request(5) is None


# ------------------------------------------------------------------ lines


def test_a_line_for_people_is_short() -> None:
    topics = [
        {"name": f"t{n}", "partitions": [{"partition": p, "leader": 1} for p in range(12)]}
        for n in range(7)
    ]
    line = line_of({"event": "LeaderAndIsr", "broker_epoch": 5, "is_full": True, "topics": topics})
    assert line.startswith("LeaderAndIsr broker_epoch=5 is_full=true t0:0(leader=1),1(leader=1)")
    assert line.endswith("and 2 more topics")
    assert ",9(leader=1),+2 t1:" in line
    brokers = [{"broker_id": 1, "is_active": True}, {"broker_id": 2, "is_active": False}]
    shown = {"event": "UpdateMetadata", "topics": [], "brokers": brokers}
    assert line_of(shown) == "UpdateMetadata brokers=1,2(offline)"
    stop = {"event": "StopReplica", "topics": [{"name": "t", "partitions": [0, 3]}]}
    assert line_of(stop) == "StopReplica t:0,3"
