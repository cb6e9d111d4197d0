"""One real node, and every cluster command of the command line against it, in either codec."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from quorate.demo.ports import free_ports
from quorate.features import INITIAL_LEVELS, KAFKA_INITIAL_LEVELS
from tests.integration.lone_node import COMMAND_SECONDS_MAX, Node
from tests.support import fork_server
from tests.support.doc_metrics import CATALOG

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", params=["native", pytest.param("kafka", marks=pytest.mark.long)])
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node"), request.param)
    try:
        yield node
    finally:
        if node.process.poll() is None:
            assert node.stop() == 0


@pytest.fixture(scope="module")
def broker(node: Node) -> Iterator[None]:
    stand_in = node.start("broker", "register", "5", "--listener", "PLAINTEXT://b5:9092", "--stay")
    try:
        node.wait_for(stand_in, "sending heartbeats")
        yield
    finally:
        stand_in.send_signal(signal.SIGINT)
        _, err = stand_in.communicate(timeout=30)
        assert (stand_in.returncode, err) == (0, "")


def test_quorum_describe(node: Node) -> None:
    status = node.ask("quorum", "describe", "status")
    assert (status["cluster_id"], status["leader_id"]) == ("cli-test", 1)
    assert status["max_follower_lag"] == 0
    assert status["current_voters"][0]["endpoints"] == [f"CONTROLLER://127.0.0.1:{node.port}"]
    (row,) = node.ask("quorum", "describe", "replication")["rows"]
    assert (row["node_id"], row["status"], row["lag"]) == (1, "Leader", 0)


def test_health(node: Node) -> None:
    """A node that runs and an address where none does."""
    found = node.ask("health")
    assert (found["is_healthy"], found["leader_id"], len(found["rows"])) == (True, 1, 1)
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    status, out, err = node.run("health", "--bootstrap", f"127.0.0.1:{node.port},{nowhere}")
    assert (status, err) == (3, "error: 1 of 2 nodes have a problem\n")
    assert sum("connection refused" in line for line in out.splitlines()) == 1
    status, out, err = node.run("health", "--bootstrap", nowhere)
    assert (status, err) == (7, "error: no node answers\n")


def test_what_is_missing_is_named(node: Node) -> None:
    """A node that answers "not yet" is not called unreachable, and one that is has its address."""
    for seconds in ("3", "20"):  # The second if a pause of the machine took up the first.
        status, _, err = node.run("--timeout", seconds, "topic", "list", "--at-least", "1000000")
        assert status == 7
        if "no answer" not in err:
            break
    assert err.startswith("error: the cluster cannot do that now through")
    assert "OFFSET_NOT_AVAILABLE" in err
    assert "shows the high watermark" in err
    assert "without a leader" not in err
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    status, _, err = node.run("--timeout", "1", "quorum", "add-voter", "9", "--at", nowhere)
    assert status == 7
    assert err.startswith(f"error: node 9 does not answer at {nowhere}")
    for dry in ((), ("--dry-run",)):
        status, _, err = node.run("quorum", "add-voter", "9", *dry)
        assert (status, "where is node 9?" in err) == (2, True), dry


def test_features(node: Node) -> None:
    rows = {row["feature"]: row for row in node.ask("feature", "describe")["rows"]}
    initial = INITIAL_LEVELS if node.codec == "native" else KAFKA_INITIAL_LEVELS
    assert rows["metadata.version"]["finalized"] == initial["metadata.version"]
    for verb in ("upgrade", "downgrade"):
        level = {"upgrade": 999, "downgrade": 1}[verb]
        for dry in ((), ("--dry-run",)):
            status, _, err = node.run("feature", verb, f"metadata.version={level}", *dry)
            assert status != 0
            assert "metadata.version" in err
    assert node.run("feature", "downgrade", "metadata.version=1", "--unsafe")[0] == 6


def test_acls(node: Node) -> None:
    """They are added, listed by what they concern, and removed; each step says what it did."""
    add = ("acl", "add", "User:app", "--operation", "read", "--operation", "alter-configs")
    made = node.ask(*add, "--topic", "or", "--prefixed", "--reason", "a first app")
    assert (made["kind"], made["created"]) == ("AclsAdded", 2)
    assert node.ask(*add, "--topic", "or", "--prefixed")["created"] == 0
    node.ask("acl", "add", "User:*", "--deny", "--operation", "all", "--cluster", "--host", "::1")
    rows = node.ask("acl", "list", "--topic", "orders", "--pattern", "match")["rows"]
    assert {(row["operation"], row["resource"], row["pattern"]) for row in rows} == {
        ("read", "or", "prefixed"),
        ("alter-configs", "or", "prefixed"),
    }
    status, out, err = node.run("acl", "list", "--permission", "deny")
    assert status == 0
    assert "kafka-cluster" in out
    assert err == "warning: node 1 does not enforce ACLs\n"
    gone = node.ask("acl", "remove", "--principal", "User:app", "--yes")["rows"]
    assert {row["operation"] for row in gone} == {"read", "alter-configs"}
    node.ask("acl", "remove", "--yes")
    assert node.ask("acl", "list")["rows"] == []


def test_an_acl_without_a_resource_is_a_usage_error(node: Node) -> None:
    for arguments in (("--operation", "read"), ("--topic", "t"), ("--topic", "t", "--cluster")):
        status, _, err = node.run("acl", "add", "User:app", *arguments)
        assert status == 2
        assert err.startswith("error: ")


def test_log_directories(node: Node, broker: None) -> None:
    """Cordons and assignments of the broker 5, in either codec."""
    del broker
    (own,) = [each["directory_id"] for each in node.ask("broker", "describe", "5")["log_dirs"]]
    assert node.ask("broker", "cordon", "5", own)["cordoned_log_dirs"] == [own]
    assert node.ask("broker", "describe", "5")["log_dirs"][0]["is_cordoned"] is True
    assert "usable" in node.run("topic", "create", "none", "--replication-factor", "1")[2]
    assert node.ask("broker", "uncordon", "5")["cordoned_log_dirs"] == []
    node.ask("topic", "create", "placed", "--replication-factor", "1")
    assert node.ask("topic", "describe", "placed")["rows"][0]["directories"] == [own]
    status, out, err = node.run("broker", "assign", "5", own, "placed:0", "placed:7")
    assert (status, "1 of 2" in err, "UNKNOWN_TOPIC_OR_PARTITION" in out) == (4, True, True)
    for arguments, code, text in (
        (("cordon", "6"), 4, "BROKER_ID_NOT_REGISTERED"),
        (("cordon", "5", "nonsense"), 2, "`quorate broker describe` shows the ids"),
        (("assign", "5", own, "none:0"), 4, "no such topic: none"),
        (("assign", "5", own, "placed:0", "--broker-epoch", "0"), 5, "STALE_BROKER_EPOCH"),
    ):
        status, _, err = node.run("broker", *arguments)
        assert (status, text in err) == (code, True), err
    node.ask("topic", "delete", "placed", "--yes")


def test_a_topic_is_created_changed_and_deleted(node: Node, broker: None) -> None:
    del broker
    dry = node.ask(
        "topic", "create", "t", "--partitions", "2", "--replication-factor", "1", "--dry-run"
    )
    assert dry["dry_run"] is True
    assert node.ask("topic", "list")["rows"] == []
    created = node.ask("topic", "create", "t", "--assignment", "5,5", "--config", "retention.ms=7")
    assert created["partitions"] == 2
    (listed,) = node.ask("topic", "list")["rows"]
    assert (listed["name"], listed["topic_id"]) == ("t", created["topic_id"])
    status, _, err = node.run("topic", "describe", "tt")
    assert (status, err) == (4, "error: no such topic: tt (did you mean t?)\n")
    node.ask("topic", "add-partitions", "t", "--total", "3")
    rows = node.ask("topic", "describe", "t")["rows"]
    assert [(row["partition"], row["leader"]) for row in rows] == [(0, 5), (1, 5), (2, 5)]
    assert node.ask("config", "get", "topic", "t")["rows"][0]["value"] == "7"
    node.ask("config", "set", "topic", "t", "retention.ms=8", "--reason", "test")
    assert node.ask("config", "get", "topic", "t")["rows"][0]["value"] == "8"
    node.ask("config", "delete", "topic", "t", "retention.ms")
    assert node.ask("config", "get", "topic", "t")["rows"] == []
    key = "cleanup.policy"
    node.ask("config", "set", "topic", "t", f"{key}=compact")
    node.ask("config", "append", "topic", "t", f"{key}=delete")
    assert node.ask("config", "get", "topic", "t")["rows"][0]["value"] == "compact,delete"
    node.ask("config", "subtract", "topic", "t", f"{key}=compact")
    assert node.ask("config", "get", "topic", "t")["rows"][0]["value"] == "delete"
    rows = node.ask("topic", "elect-leaders", "t", "--partition", "1")["rows"]
    assert rows == [{"partition": 1, "leader": 5, "result": "OK"}]
    assert node.run("topic", "elect-leaders", "t", "--unclean")[0] == 6
    for dry in ((), ("--dry-run",)):
        assert node.run("topic", "elect-leaders", "none", *dry)[0] == 4
        assert node.run("topic", "delete", "none", "--yes", *dry)[0] == 4
        assert node.run("topic", "create", "t", "--assignment", "5", *dry)[0] == 5
        assert node.run("config", "set", "topic", "none", "retention.ms=1", *dry)[0] == 4
        assert node.run("broker", "unregister", "77", "--yes", *dry)[0] == 4
    assert node.run("topic", "delete", "t")[0] == 6
    node.ask("topic", "delete", "t", "--yes")
    status, _, err = node.run("topic", "describe", "t")
    assert (status, err) == (4, "error: no such topic: t\n")


def test_brokers(node: Node, broker: None) -> None:
    del broker
    (row,) = node.ask("broker", "list")["rows"]
    assert (row["broker_id"], row["state"]) == (5, "active")
    assert node.ask("broker", "fence-status", "5")["state"] == "active"
    assert node.ask("broker", "describe", "5")["listeners"] == ["PLAINTEXT://b5:9092"]
    node.ask("broker", "register", "6", "--listener", "PLAINTEXT://b6:9092")
    assert node.run("broker", "fence-status", "6")[0] == 3
    node.ask("broker", "unregister", "6", "--yes")
    status, _, err = node.run("broker", "describe", "6")
    assert (status, err) == (4, "error: broker 6 is not registered (registered: 5)\n")
    status, _, err = node.run("quorum", "may-stop", "7")
    assert (status, err) == (4, "error: node 7 is neither a voter nor an observer (known: 1)\n")


def test_probes_and_metrics(node: Node) -> None:
    node.ask("topic", "list")  # answered once the node leads: it is ready then
    assert node.page("/livez").endswith("ok\n")
    assert json.loads(node.page("/readyz?format=json"))["ok"] is True
    page = node.page("/metrics")
    assert 'quorate_raft_state{state="leader"} 1.0' in page
    assert "\nquorate_event_loop_busy_ratio " in page
    named = {line.split(" ")[2] for line in page.splitlines() if line.startswith("# TYPE quorate_")}
    assert named <= set(CATALOG)
    assert "_created" not in page
    open_page = node.page("/metrics", accept="application/openmetrics-text;version=1.0.0")
    assert open_page.endswith("# EOF\n")
    families = list(text_string_to_metric_families(open_page))
    assert {each.name for each in families} >= {"quorate_raft_state", "quorate_quarantines"}


@pytest.mark.parametrize("seconds", ["0.001", "0.01"])
def test_a_tiny_deadline_is_one_line_and_no_traceback(node: Node, seconds: str) -> None:
    status, _, err = node.run("--timeout", seconds, "topic", "list")
    assert status in (0, 7)
    assert err.count("\n") == (1 if status else 0), err


def test_the_audit_log_has_principal_and_reason(node: Node) -> None:
    """What a command was given for can be read from the files of a running node."""
    node.ask("config", "set", "broker", "", "log.retention.ms=9", "--reason", "test")
    folder = Path(node.ask("config", "show")["rows"][1]["value"])
    status, out, err = node.run(
        "log", "dump", "-o", "jsonl", *map(str, (folder / "__cluster_metadata-0").glob("*.log"))
    )
    assert status == 0, err
    batches = [json.loads(line) for line in out.splitlines()]
    reasons = {
        record.get("headers", {}).get("reason") for batch in batches for record in batch["records"]
    }
    assert "test" in reasons
    values = {
        record["payload"]["type"]
        for batch in batches
        if batch["producerId"] >= 0
        for record in batch["records"]
    }
    assert "CONFIG_RECORD" in values
    assert not [record for batch in batches for record in batch["records"] if "error" in record]


def test_a_stopped_node_is_unreachable(tmp_path: Path) -> None:
    node = Node(tmp_path, "native")
    assert node.stop() == 0
    assert node.run("topic", "list", "--timeout", "0.5")[0] == 7


DEFAULT_VIEWS = (
    "health", "quorum describe status", "quorum describe replication",
    "quorum may-stop 1", "broker list", "broker describe 5", "broker fence-status 5", "topic list",
    "topic describe orders-of-the-day", "config get topic orders-of-the-day", "acl list",
    "feature describe", "user list", "version", "context list",
)  # fmt: skip


@pytest.mark.parametrize("words", DEFAULT_VIEWS)
def test_a_default_view_fits_100_columns(node: Node, broker: None, words: str) -> None:
    """And ``--wide`` shows more columns, where there is one."""
    name = "orders-of-the-day"
    node.run("topic", "create", name, "--assignment", "5", "--config", "retention.ms=604800000")
    node.run("acl", "add", "User:billing", "--operation", "describe-configs", "--topic", name)
    _, out, err = node.run(*words.split())
    assert out, err
    assert max(map(len, out.splitlines())) <= 100, out
    assert not any(line != line.rstrip() for line in out.splitlines())
    headers = [line for line in out.splitlines() if line.isupper()]
    # A status has fields and no columns: tests/unit/cli/test_quorum_status_table.py has its --wide.
    if headers and "--wide" in node.run(*words.split(), "--help")[1]:
        wide = node.run(*words.split(), "--wide")[1]
        assert _columns(wide) > _columns(out)


def _columns(table: str) -> int:
    return max(len(line.split()) for line in table.splitlines() if line.isupper())


def test_a_checkpoint_is_written_now(node: Node) -> None:
    node.ask("config", "set", "broker", "", "log.retention.ms=11")
    planned = node.ask("snapshot", "now", "--dry-run")
    (made,) = node.ask("snapshot", "now", "--reason", "before an upgrade")["rows"]
    assert planned["dry_run"] is True
    assert (made["node_id"], made["is_new"], made["bytes"] > 0) == (1, True, True)
    folder = node.ask("config", "show")["rows"][1]["value"]
    kept = node.ask("snapshot", "list", folder)["rows"]
    assert made["end_offset"] in [row["end_offset"] for row in kept]
    status, _, err = node.run("snapshot", "now", "--bootstrap", f"127.0.0.1:{free_ports(1)[0]}")
    assert (status, err.count("\n")) == (7, 1)


def test_a_shell_completes_what_the_cluster_has(node: Node, broker: None) -> None:
    node.run("topic", "create", "completed", "--assignment", "5")

    def offered(*words: str) -> list[str]:
        environment = {
            **node._environment,
            "_QUORATE_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("quorate", *words)),
            "COMP_CWORD": str(len(words)),
        }
        done = fork_server.run("quorate", (), environment=environment, timeout=COMMAND_SECONDS_MAX)
        assert (done.returncode, done.stderr) == (0, "")
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert offered("topic", "describe", "comp") == ["completed"]
    assert offered("broker", "describe", "") == ["5"]
    assert offered("quorum", "may-stop", "") == ["1"]


def test_watch_shows_changes_with_who_and_why(node: Node) -> None:
    first = node.ask("config", "set", "broker", "", "log.retention.ms=21", "--reason", "watched")
    end = node.ask("config", "set", "broker", "", "log.retention.ms=22")["end_offset"]
    begin = str(first["end_offset"] - 1)
    status, out, err = node.run("watch", "--from-offset", begin, "--count", "2", "-o", "jsonl")
    assert status == 0, err
    one, other = map(json.loads, out.splitlines())
    assert one["end_offset"] <= other["base_offset"]
    status, out, _ = node.run("watch", "--from-offset", str(end - 1), "--count", "1")
    assert (status, "config" in out) == (0, True)
    # The command line begins with a producer of its own.
    watching = node.start("watch", "--count", "2")
    node.wait_for(watching, "watching from offset")
    node.ask("config", "set", "broker", "", "log.retention.ms=23", "--reason", "seen live")
    out, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert ": seen live" in out
    assert "value=23" in out
    status, _, err = node.run("watch", "--from-offset", "99999999", "--timeout", "1")
    assert (status, err.count("error: ")) == (4, 1), err


def test_top_shows_looks_one_below_the_other(node: Node) -> None:
    status, out, err = node.run("top", "--count", "2", "--interval", "0.2", "-o", "jsonl")
    assert status == 0, err
    first, second = map(json.loads, out.splitlines())
    assert first["committed_per_s"] is None
    assert second["committed_per_s"] >= 0
    assert second["rows"][0]["role"] == "leader"
    status, out, _ = node.run("top", "--count", "1")
    assert (status, out.count("NODE_ID")) == (0, 1)
