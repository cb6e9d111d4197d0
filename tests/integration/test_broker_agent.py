"""Agents of brokers as processes: every start and end of a broker that KIP-380 is about."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import load_identity, write_identity
from quorum.types import uuid_to_text
from tests.integration.broker_agents import (
    SETTINGS,
    Agents,
    agents_alone,
    agents_of,
    create_topic,
    options_of,
)
from tests.integration.processes import Processes, running
from tests.support.certificates import authority, caller
from tests.support.certificates import node as node_certificate

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("node"), voters=1, settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def agents(one_node: Processes, tmp_path: Path) -> Iterator[Agents]:
    with agents_alone(one_node, tmp_path) as agents:
        yield agents


def leaders(cluster: Processes, topic: str) -> list[int]:
    return [each["leader"] for each in cluster.ask("topic", "describe", topic)["rows"]]


def test_a_broker_follows_the_metadata(agents: Agents) -> None:
    """Registered, caught up, unfenced by what it has applied, told what to host and to stop."""
    cluster = agents.cluster
    one, two = agents.active(1, 2)
    states = [each["state"] for each in one.named("StateChanged")]
    assert states[-2:] == ["fenced", "active"]
    create_topic(cluster, "orders", "1,2", "2,1")
    command = one.until_event("LeaderAndIsr", is_full=False)
    assert command["broker_epoch"] == one.epoch != two.epoch
    (topic,) = command["topics"]
    assert topic["name"] == "orders"
    assert [(each["partition"], each["leader"]) for each in topic["partitions"]] == [(0, 1), (1, 2)]
    two.until("its folders", lambda: two.folders() == {"orders-0", "orders-1"})
    assert one.topic_id("orders-0") == topic["topic_id"]
    cluster.ask("topic", "delete", "orders", "--yes")
    stop = one.until_event("StopReplica", delete_partitions=True)
    assert stop["topics"] == [
        {"topic_id": topic["topic_id"], "name": "orders", "partitions": [0, 1]}
    ]
    one.until("no folders", lambda: not one.folders())
    for each in (one, two):
        assert each.shut_down()["is_clean"] is True
        assert not each.named("Refused")


def test_a_shutdown_hands_leaderships_over_and_a_restart_is_a_new_registration(
    agents: Agents,
) -> None:
    cluster = agents.cluster
    one, two = agents.active(1, 2)
    create_topic(cluster, "orders", "1,2")
    two.until_event("LeaderAndIsr", is_full=False)
    former = one.epoch
    assert one.shut_down() == {
        "kind": "BrokerAgentEvent", "version": 1,
        "event": "Ended", "broker_epoch": former, "is_clean": True,
    }  # fmt: skip
    assert leaders(cluster, "orders") == [2]
    assert json.loads((one.data_dir / ".kafka_cleanshutdown").read_text())["brokerEpoch"] == former
    again = agents.start(1)
    again.until_state("active")
    assert again.epoch > former
    assert not (one.data_dir / ".kafka_cleanshutdown").exists()
    full = again.until_event("LeaderAndIsr", is_full=True, broker_epoch=again.epoch)
    assert [each["name"] for each in full["topics"]] == ["orders"]


def test_a_killed_broker_is_refused_until_its_session_is_over(agents: Agents) -> None:
    """380.5: the bounce is a failure first, and a start under a new epoch then."""
    cluster = agents.cluster
    one, _ = agents.active(1, 2)
    create_topic(cluster, "orders", "1,2")
    one.until("its folder", lambda: one.folders() == {"orders-0"})
    former = one.epoch
    one.send(signal.SIGKILL)
    one.wait()
    again = agents.start(1)
    again.until_state("active")
    # None if its start took as long as the session.
    for each in again.named("Waiting"):
        assert "DUPLICATE_BROKER_REGISTRATION" in each["cause"]
    assert again.epoch > former
    assert leaders(cluster, "orders") == [2]
    assert again.folders() == {"orders-0"}
    full = again.until_event("LeaderAndIsr", is_full=True, broker_epoch=again.epoch)
    assert full["topics"][0]["partitions"][0]["leader"] == 2


def test_what_is_on_disk_is_compared_after_a_restart(agents: Agents) -> None:
    """Deleted while it was down, and another topic of that name: told apart by the topic's id."""
    cluster = agents.cluster
    one, _ = agents.active(1, 2)
    for name in ("orders", "bills", "kept"):
        create_topic(cluster, name, "1,2")
    one.until("its folders", lambda: len(one.folders()) == 3)
    orders, bills, kept = (one.topic_id(f"{each}-0") for each in ("orders", "bills", "kept"))
    one.shut_down()
    cluster.ask("topic", "delete", "orders", "--yes")
    cluster.ask("topic", "delete", "bills", "--yes")
    create_topic(cluster, "orders", "2,1")
    again = agents.start(1)
    again.until_state("active")
    stop = again.until_event("StopReplica", delete_partitions=True)
    assert {each["topic_id"] for each in stop["topics"]} == {orders, bills}
    assert stop["broker_epoch"] == again.epoch
    assert again.folders() == {"orders-0", "kept-0"}
    assert again.topic_id("orders-0") not in (orders, bills)
    assert again.topic_id("kept-0") == kept


def test_a_second_process_of_a_broker_gives_up(agents: Agents, tmp_path: Path) -> None:
    (one,) = agents.active(1)
    second = agents.start(1, "--registration-timeout", "2", data_dir=tmp_path / "second")
    assert second.wait() == 5
    assert "stop the other process, or use another id" in second.errors
    assert not second.named("Registered")
    assert one.process.poll() is None
    one.shut_down()


def test_one_directory_has_one_process(agents: Agents) -> None:
    (one,) = agents.active(1)
    second = agents.start(1)
    assert second.wait() == 1
    assert "in use by another process" in second.errors
    one.shut_down()
    stranger = agents.start(9, data_dir=one.data_dir)
    assert stranger.wait() == 1
    assert "belongs to node 1, not to node 9" in stranger.errors


def test_a_paused_process_that_was_replaced_executes_nothing_more(
    agents: Agents, tmp_path: Path
) -> None:
    """The zombie: its id belongs to another process when it wakes up. It refuses, and ends."""
    cluster = agents.cluster
    one, _ = agents.active(1, 2)
    create_topic(cluster, "orders", "1,2")
    one.until("its folder", lambda: one.folders() == {"orders-0"})
    former = one.epoch
    one.send(signal.SIGSTOP)
    heir = agents.start(1, data_dir=tmp_path / "heir")
    heir.until_state("active")
    create_topic(cluster, "bills", "1,2")
    heir.until("its folders", lambda: heir.folders() == {"orders-0", "bills-0"})
    one.send(signal.SIGCONT)
    assert one.wait() == 5
    assert "has taken broker 1 over" in one.errors
    assert one.epoch == former
    assert one.folders() == {"orders-0"}
    refused = one.named("Refused")
    assert {each["error"] for each in refused} <= {"STALE_BROKER_EPOCH"}
    heirs = {each["broker_epoch"] for each in refused} - {former}
    assert heirs <= {heir.epoch}
    executed = one.named("LeaderAndIsr") + one.named("StopReplica")
    assert {each["broker_epoch"] for each in executed} == {former}
    heir.shut_down()


def test_a_paused_process_is_fenced_and_comes_back_under_its_epoch(agents: Agents) -> None:
    cluster = agents.cluster
    one, two = agents.active(1, 2)
    create_topic(cluster, "orders", "1,2")
    one.until_event("LeaderAndIsr", is_full=False)
    former = one.epoch
    one.send(signal.SIGSTOP)
    two.until("the leadership", lambda: leaders(cluster, "orders") == [2])
    assert (
        cluster.run("--bootstrap", cluster.addresses[0], "broker", "fence-status", "1").status == 3
    )
    one.send(signal.SIGCONT)

    def times_active() -> int:
        return [each["state"] for each in one.named("StateChanged")].count("active")

    one.until("to be active again", lambda: times_active() == 2)
    assert one.epoch == former
    last = one.named("LeaderAndIsr")[-1]["topics"][0]["partitions"][0]
    assert (last["leader"], last["leader_epoch"]) == (2, 1)


def test_an_unregistered_broker_registers_again_under_a_new_epoch(agents: Agents) -> None:
    """A new generation in one process: what follows is tagged with it."""
    cluster = agents.cluster
    one, _ = agents.active(1, 2)
    create_topic(cluster, "orders", "1,2")
    one.until("its folder", lambda: one.folders() == {"orders-0"})
    former = one.epoch
    cluster.ask("broker", "unregister", "1", "--yes")
    one.until("a new epoch", lambda: one.epoch > former)
    one.until_state("active")
    assert "unregistered" in [each["state"] for each in one.named("StateChanged")]
    one.until_event("LeaderAndIsr", is_full=True, broker_epoch=one.epoch)
    create_topic(cluster, "bills", "1,2")
    one.until("its folders", lambda: one.folders() == {"orders-0", "bills-0"})
    assert one.named("LeaderAndIsr")[-1]["broker_epoch"] == one.epoch
    assert one.shut_down() | {"is_clean": True} == one.events[-1]


def test_a_broker_may_have_the_id_of_a_node(agents: Agents) -> None:
    """ADR 70: broker 1 and node 1 are two things, and neither changes with the other."""
    cluster = agents.cluster
    (one,) = agents.active(1)
    status = cluster.ask("quorum", "describe", "status")
    assert [each["id"] for each in status["current_voters"]] == [1]
    assert status["leader_id"] == 1
    assert [each["broker_id"] for each in cluster.ask("broker", "list")["rows"]] == [1]
    one.shut_down()
    cluster.ask("broker", "unregister", "1", "--yes")
    assert cluster.ask("broker", "list")["rows"] == []
    after = cluster.ask("quorum", "describe", "status")
    assert after["current_voters"] == status["current_voters"]
    assert after["leader_id"] == 1


def test_a_stop_before_the_registration(agents: Agents, tmp_path: Path) -> None:
    """A broker that waits for the session of another process can be stopped at once."""
    (one,) = agents.active(1)
    waiting = agents.start(1, data_dir=tmp_path / "waiting")
    waiting.until_event("Waiting")
    assert waiting.shut_down()["is_clean"] is False
    one.shut_down()


def test_a_refused_registration_ends_the_process(agents: Agents, tmp_path: Path) -> None:
    """A directory that another broker has is no matter of waiting."""
    (one,) = agents.active(1)
    fs, copy = OsFileSystem(), tmp_path / "copy"
    copy.mkdir()
    identity = load_identity(fs, one.data_dir)
    write_identity(fs, copy, replace(identity, node_id=3))
    agent = agents.start(3, data_dir=copy)
    assert agent.wait() != 0
    assert "a log directory belongs to broker 1" in agent.errors
    one.shut_down()


def test_a_broker_chooses_among_its_directories_and_reports_its_choice(
    agents: Agents, tmp_path: Path
) -> None:
    """AssignReplicasToDirs, and a cordoned directory that gets nothing new."""
    cluster, second = agents.cluster, tmp_path / "second"
    agent = agents.start(1, "--data-dir", str(second))
    agent.until_state("active")
    first_id, second_id = (
        uuid_to_text(load_identity(OsFileSystem(), each).directory_id)
        for each in (agent.data_dir, second)
    )
    create_topic(cluster, "orders", "1", "1")

    def directories(topic: str) -> set[str]:
        rows = cluster.ask("topic", "describe", topic)["rows"]
        return {each for row in rows for each in row["directories"]}

    agent.until("both to be named", lambda: directories("orders") == {first_id, second_id})
    assert len(agent.folders()) == 1
    cordoned = cluster.ask("broker", "cordon", "1", first_id)
    assert cordoned["cordoned_log_dirs"] == [first_id]
    create_topic(cluster, "bills", "1", "1")
    assert directories("bills") == {second_id}
    agent.until("the folders", lambda: (second / "bills-1").exists())
    assert len(agent.folders()) == 1
    agent.shut_down()
    again = agents.start(1, "--data-dir", str(second))
    again.until_state("active")
    described = cluster.ask("broker", "describe", "1")["log_dirs"]
    assert {each["directory_id"]: each["is_cordoned"] for each in described} == {
        first_id: True, second_id: False,
    }  # fmt: skip
    cluster.ask("broker", "cordon", "1")
    refused = cluster.run(
        "--bootstrap", cluster.addresses[0], "topic", "create", "more", "--replication-factor", "1"
    )
    assert refused.status != 0
    assert "usable brokers" in refused.err
    assert cluster.ask("broker", "uncordon", "1")["cordoned_log_dirs"] == []
    moved = cluster.ask("broker", "assign", "1", second_id, "orders:0", "orders:1")
    assert [each["result"] for each in moved["rows"]] == ["OK", "OK"]
    again.until("what it hosts to be said again", lambda: len(directories("orders")) == 2)
    again.shut_down()


@pytest.mark.parametrize("form", ["watch", "observer"])
def test_a_fail_over_of_the_controller_changes_no_registration(tmp_path: Path, form: str) -> None:
    with (
        running(tmp_path, voters=3, settings=SETTINGS) as cluster,
        agents_of(cluster, tmp_path) as agents,
    ):
        one, two = agents.start(1, *options_of(cluster, form)), *agents.active(2)
        one.until_state("active")
        create_topic(cluster, "orders", "1,2")
        one.until_event("LeaderAndIsr", is_full=False)
        former = (one.epoch, two.epoch)
        leader = cluster.leader()
        cluster.kill(leader)
        cluster.leader()
        create_topic(cluster, "bills", "2,1")
        for each in (one, two):
            each.until("the new topic", lambda each=each: "bills-0" in each.folders())  # type: ignore[misc]
        assert (one.epoch, two.epoch) == former
        epochs = {each["controller_epoch"] for each in one.named("LeaderAndIsr")}
        assert len(epochs) == 2
        assert all(each.named("StateChanged")[-1]["state"] == "active" for each in (one, two))
        assert one.shut_down()["is_clean"] is True
        assert leaders(cluster, "orders") == [2]


def test_a_broker_may_be_started_before_its_cluster(tmp_path: Path) -> None:
    with (
        running(tmp_path, voters=1, settings=SETTINGS, starts=False) as cluster,
        agents_of(cluster, tmp_path) as agents,
    ):
        early, stopped = agents.start(1, "--timeout", "1"), agents.start(2, "--timeout", "1")
        for each in (early, stopped):
            each.until("to ask again", lambda each=each: "no node answers yet" in each.errors)  # type: ignore[misc]
        stopped.send(signal.SIGTERM)
        assert stopped.wait() == 0
        cluster.start_all()
        early.until_state("active")
        early.shut_down()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_an_agent_needs_two_rights_in_a_secured_cluster(tmp_path: Path) -> None:
    """CLUSTER_ACTION to register, READ of the log to follow it; each refusal ends the agent."""
    folder = tmp_path / "tls"
    folder.mkdir()
    authority(folder, "ours")
    node_certificate(folder, "ours", "n1", "DNS:node-1.quorum.test")
    for name in ("admin", "b1"):
        caller(folder, "ours", name, f"DNS:{name}.test")

    def shows(name: str) -> tuple[str, ...]:
        files = {"--tls-ca": "ours.pem", "--tls-cert": f"{name}.pem", "--tls-key": f"{name}.key"}
        return tuple(each for flag, file in files.items() for each in (flag, str(folder / file)))

    with (
        running(tmp_path, voters=1, settings=SETTINGS, starts=False) as cluster,
        agents_of(cluster, tmp_path) as agents,
    ):
        (member,) = cluster.voters
        member.settings = {
            "security.mode": "bound",
            "security.operators": ["User:admin.test"],
            "tls.cert_file": str(folder / "n1.pem"),
            "tls.key_file": str(folder / "n1.key"),
            "tls.ca_file": str(folder / "ours.pem"),
            "tls.require_client_cert": True,
            "tls.node_name": "node-{id}.quorum.test",
        }
        cluster.configure(member)
        cluster.start_all()

        def allow(operation: str, *resource: str) -> None:
            address = ("--bootstrap", cluster.addresses[0], *shows("admin"))
            cluster.command(
                "acl", "add", "User:b1.test", "--operation", operation, *resource, *address
            )

        stranger = agents.start(1, *shows("b1"))
        assert stranger.wait() == 6
        assert "CLUSTER_AUTHORIZATION_FAILED" in stranger.errors
        allow("cluster-action", "--cluster")
        blind = agents.start(1, *shows("b1"))
        assert blind.wait() == 6
        assert "AUTHORIZATION_FAILED" in blind.errors
        allow("read", "--topic", "__cluster_metadata")
        agent = agents.start(1, *shows("b1"))
        agent.until_state("active")
        assert agent.shut_down()["is_clean"] is True
