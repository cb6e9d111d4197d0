"""Agents of brokers with an observer in their process: its own log, checkpoints and certificate."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.demo.local_cluster import LocalNode
from quorum.types import uuid_to_text
from tests.integration.broker_agents import (
    SESSION_MS,
    Agent,
    Agents,
    agents_alone,
    agents_of,
    create_topic,
    observer_of,
)
from tests.integration.processes import Processes, running
from tests.integration.traffic import write_many
from tests.support.certificates import authority, caller
from tests.support.certificates import node as node_certificate

pytestmark = pytest.mark.integration

SETTINGS: dict[str, object] = {
    "controller.session_timeout_ms": SESSION_MS,
    "log.segment_bytes": 32 << 10,
    "snapshot.max_bytes_between": 64 << 10,
    "snapshot.min_changed_records_ratio": 0.05,
    "quorum.snapshot_chunk_bytes": 2 << 10,
    # An observer that is silent for this long no longer holds the log back (630.5).
    "quorum.observer_session_ms": 1_000,
}
FETCHED = 'quorate_raft_appended_records_total{source="fetch"}'
INSTALLED = 'quorate_snapshot_downloads_total{outcome="installed"}'
WRITES = 400
ROUNDS_MAX = 40


@pytest.fixture(scope="module")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("node"), voters=1, settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def agents(one_node: Processes, tmp_path: Path) -> Iterator[Agents]:
    with agents_alone(one_node, tmp_path) as agents:
        yield agents


def start(agents: Agents, broker_id: int, observer: LocalNode, *options: str) -> Agent:
    return agents.start(broker_id, "--observer", str(observer.config_path), *options)


def observers(cluster: Processes) -> list[int]:
    found = cluster.ask("quorum", "describe", "replication")["rows"]
    return [each["node_id"] for each in found if each["status"] == "Observer"]


def measured(cluster: Processes, node: LocalNode, series: str) -> int:
    value = cluster.metric(node, series)
    return 0 if value is None else int(value)


def outrun(cluster: Processes, offset: int) -> None:
    """Write until the leader's log starts above ``offset``."""
    leader = cluster.leader()
    for _ in range(ROUNDS_MAX):
        write_many(cluster, WRITES)
        if measured(cluster, leader, "quorate_raft_log_start_offset") > offset:
            return
    raise AssertionError(f"the log was never trimmed beyond {offset}")


def test_a_broker_follows_as_an_observer_and_resumes_from_its_own_log(agents: Agents) -> None:
    """It replicates, executes, hands over, and begins where it stopped: nothing is read anew."""
    cluster = agents.cluster
    observer = observer_of(cluster)
    one = start(agents, 1, observer)
    (two,) = agents.active(2)
    one.until_state("active")
    assert observer.id in observers(cluster)
    create_topic(cluster, "orders", "1,2", "2,1")
    command = one.until_event("LeaderAndIsr", is_full=False)
    assert command["broker_epoch"] == one.epoch != two.epoch
    write_many(cluster, WRITES)
    create_topic(cluster, "bills", "1,2")
    one.until("its folders", lambda: one.folders() == {"orders-0", "orders-1", "bills-0"})
    end = measured(cluster, observer, "quorate_raft_log_end_offset")
    former = one.epoch
    assert one.shut_down() == {
        "kind": "BrokerAgentEvent", "version": 1,
        "event": "Ended", "broker_epoch": former, "is_clean": True,
    }  # fmt: skip
    assert "event=stopped" in one.errors

    cluster.ask("topic", "delete", "orders", "--yes")
    again = start(agents, 1, observer)
    again.until_state("active")
    assert again.epoch > former
    again.until("what is left", lambda: again.folders() == {"bills-0"})
    assert measured(cluster, observer, FETCHED) < end / 2
    assert measured(cluster, observer, INSTALLED) == 0
    stop = again.until_event("StopReplica", delete_partitions=True)
    assert [each["name"] for each in stop["topics"]] == ["orders"]
    # A crash of both: the broker's session has to run out, the observer's log is there.
    again.send(signal.SIGKILL)
    again.wait()
    third = start(agents, 1, observer)
    third.until_state("active")
    assert third.epoch > again.epoch
    assert measured(cluster, observer, FETCHED) < end / 2
    assert third.folders() == {"bills-0"}
    third.shut_down()


def test_a_paused_broker_is_fenced_and_catches_up_by_a_checkpoint(agents: Agents) -> None:
    """Its log ends below the leader's: what was deleted and created below the gap is executed."""
    cluster = agents.cluster
    observer = observer_of(cluster)
    one = start(agents, 1, observer)
    agents.active(2)
    one.until_state("active")
    create_topic(cluster, "orders", "1,2")
    create_topic(cluster, "kept", "1,2")
    one.until("its folders", lambda: one.folders() == {"orders-0", "kept-0"})
    end = measured(cluster, observer, "quorate_raft_log_end_offset")
    installed = measured(cluster, observer, INSTALLED)
    former = one.epoch
    one.send(signal.SIGSTOP)
    one.until("to be fenced", lambda: is_fenced(cluster, 1))
    cluster.ask("topic", "delete", "orders", "--yes")
    create_topic(cluster, "bills", "2,1")
    outrun(cluster, end)
    one.send(signal.SIGCONT)
    one.until("its folders", lambda: one.folders() == {"kept-0", "bills-0"})
    one.until("a checkpoint", lambda: measured(cluster, observer, INSTALLED) > installed)
    one.until("to be active", lambda: not is_fenced(cluster, 1))
    one.until_state("active")
    assert one.epoch == former
    (stop,) = one.named("StopReplica")
    assert [each["name"] for each in stop["topics"]] == ["orders"]
    assert stop["broker_epoch"] == former
    hosts = [each for each in one.named("LeaderAndIsr") if not each["is_full"]]
    names = {topic["name"]: topic for each in hosts for topic in each["topics"]}
    assert names["bills"]["partitions"][0]["leader"] == 2
    # The leader that it has lost meanwhile, below the gap.
    assert names["kept"]["partitions"][0]["leader"] == 2
    assert one.shut_down()["is_clean"] is True


def is_fenced(cluster: Processes, broker_id: int) -> bool:
    done = cluster.run(
        "--bootstrap", cluster.addresses[0], "broker", "fence-status", str(broker_id)
    )
    return done.status == 3


def test_a_second_process_of_a_broker_gives_up_and_ends_its_observer(
    agents: Agents, tmp_path: Path
) -> None:
    (one,) = agents.active(1)
    observer = observer_of(agents.cluster)
    options = ("--observer", str(observer.config_path), "--registration-timeout", "2")
    second = agents.start(1, *options, data_dir=tmp_path / "second")
    assert second.wait() == 5
    assert "stop the other process, or use another id" in second.errors
    assert one.process.poll() is None
    one.shut_down()


def test_a_voter_is_no_observer(agents: Agents) -> None:
    """A broker that restarts must not take a vote away."""
    cluster = agents.cluster
    joining = cluster.add_observer(max(cluster.nodes) + 1)
    joining.settings = {"quorum.auto_join": True}
    cluster.format(joining)
    refused = start(agents, 1, joining)
    assert refused.wait() == 6
    assert "quorum.auto_join" in refused.errors

    lone = cluster.add_observer(max(cluster.nodes) + 1)
    cluster.configure(lone)
    another = uuid_to_text(bytes(range(16)))
    cluster.command(
        "format", "--config", str(lone.config_path), "--cluster-id", another, "--standalone"
    )
    refused = start(agents, 1, lone)
    assert refused.wait() == 6
    assert "is a voter" in refused.errors


def test_a_restored_log_ends_the_agent_until_its_observer_is_formatted_again(
    tmp_path: Path,
) -> None:
    """Records that it has executed are taken back: it does not go on with a log of the past."""
    with (
        running(tmp_path / "nodes", voters=1, settings=SETTINGS) as cluster,
        agents_of(cluster, tmp_path) as agents,
    ):
        (member,) = cluster.voters
        observer = observer_of(cluster)
        one = start(agents, 1, observer)
        one.until_state("active")
        create_topic(cluster, "kept", "1")
        target = str(tmp_path / "backup")
        at = cluster.ask("backup", "create", target)["end_offset"]
        create_topic(cluster, "lost", "1")
        one.until("its folders", lambda: one.folders() == {"kept-0", "lost-0"})
        cluster.kill(member)
        shutil.move(member.data_dir, tmp_path / "old")
        restored = cluster.run(
            "backup", "restore", target, str(member.data_dir), "--node-id", "1", "--endpoint",
            member.address, "--at-offset", str(at), "--cluster-id", cluster.cluster_id,
            "-o", "json",
        ).json  # fmt: skip
        incarnation = restored["log_incarnation"]["id"]
        cluster.start(member)
        cluster.wait_ready([member])
        assert one.wait() == 5
        assert "LOG_INCARNATION_MISMATCH" in one.errors
        assert f"--log-incarnation {incarnation}" in one.errors
        assert one.folders() == {"kept-0", "lost-0"}
        # The directory as it is helps no later start.
        again = start(agents, 1, observer)
        assert again.wait() == 5

        shutil.move(observer.data_dir, tmp_path / "old-observer")
        cluster.command(
            "format", "--config", str(observer.config_path), "--cluster-id", cluster.cluster_id,
            "--no-initial-voters", "--log-incarnation", incarnation,
        )  # fmt: skip
        anew = start(agents, 1, observer)
        anew.until_state("active")
        anew.until("what is left", lambda: anew.folders() == {"kept-0"})
        stop = anew.until_event("StopReplica", delete_partitions=True)
        assert [each["name"] for each in stop["topics"]] == ["lost"]
        assert anew.shut_down()["is_clean"] is True


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_secured_observer_has_its_certificate_and_the_agent_another(tmp_path: Path) -> None:
    """The node fetches under its name; the agent registers as its own principal."""
    folder = tmp_path / "tls"
    folder.mkdir()
    authority(folder, "ours")
    node_certificate(folder, "ours", "n1", "DNS:node-1.quorum.test")
    node_certificate(folder, "ours", "n2", "DNS:observer-2.quorum.test")
    for name in ("admin", "b1"):
        caller(folder, "ours", name, f"DNS:{name}.test")

    def shows(name: str) -> tuple[str, ...]:
        files = {"--tls-ca": "ours.pem", "--tls-cert": f"{name}.pem", "--tls-key": f"{name}.key"}
        return tuple(each for flag, file in files.items() for each in (flag, str(folder / file)))

    def settings(name: str) -> dict[str, Any]:
        return {
            "security.mode": "bound",
            "security.operators": ["User:admin.test"],
            "tls.cert_file": str(folder / f"{name}.pem"),
            "tls.key_file": str(folder / f"{name}.key"),
            "tls.ca_file": str(folder / "ours.pem"),
            "tls.require_client_cert": True,
            "tls.node_name": "node-{id}.quorum.test",
            "tls.observer_name": "observer-{id}.quorum.test",
        }

    with (
        running(tmp_path, voters=1, settings=SETTINGS, starts=False) as cluster,
        agents_of(cluster, tmp_path) as agents,
    ):
        (member,) = cluster.voters
        member.settings = settings("n1")
        cluster.configure(member)
        observer = cluster.add_observer(2)
        observer.settings = settings("n2")
        cluster.format(observer)
        cluster.start(member)
        cluster.wait_ready([member])
        address = ("--bootstrap", cluster.addresses[0], *shows("admin"))
        rights = (("cluster-action", "--cluster"), ("read", "--topic", "__cluster_metadata"))
        for operation, *resource in rights:
            cluster.command(
                "acl", "add", "User:b1.test", "--operation", operation, *resource, *address
            )
        agent = start(agents, 1, observer, *shows("b1"))
        agent.until_state("active")
        assert agent.shut_down()["is_clean"] is True
        # With the node's own certificate the agent would be nobody whom a right was given to.
        nobody = start(agents, 1, observer, *shows("n2"))
        assert nobody.wait() == 6
        assert "AUTHORIZATION_FAILED" in nobody.errors
