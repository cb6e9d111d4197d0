"""What people get wrong: names that are near, things that do not exist, options in any place."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.lone_node import Node

pytestmark = pytest.mark.integration

LONG = "a-topic-whose-name-" + "is-as-long-as-" * 3 + "people-make-them"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node"), "native")
    brokers = []
    try:
        for each in ("5", "6"):
            words = ("broker", "register", each, "--listener", f"PLAINTEXT://b{each}:9092")
            brokers.append(node.start(*words, "--stay"))
            node.wait_for(brokers[-1], "sending heartbeats")
        yield node
    finally:
        for stand_in in brokers:
            stand_in.send_signal(signal.SIGINT)
            stand_in.communicate(timeout=30)
        assert node.stop() == 0


@pytest.fixture(scope="module", autouse=True)
def topics(node: Node) -> None:
    for name in ("orders", LONG):
        status, _, err = node.run("topic", "create", name, "--assignment", "5:6,6:5,5:6")
        assert status == 0, err


@pytest.mark.parametrize(
    "words",
    [
        "topic describe ordes",
        "topic delete ordes --yes",
        "topic delete ordes --dry-run",
        "topic add-partitions ordes --total 9",
        "topic elect-leaders ordes",
        "config get topic ordes",
        "config set topic ordes retention.ms=1",
        "config delete topic ordes retention.ms --dry-run",
    ],
)
def test_an_unknown_topic_is_answered_with_one_that_is_near(node: Node, words: str) -> None:
    status, out, err = node.run(*words.split())
    assert (status, out) == (4, "")
    assert err.endswith("(did you mean orders?)\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("config get broker 77", 4, "broker 77 is not registered (registered: 5, 6)"),
        ("config get broker seven", 2, "'seven' is no broker id: write a number"),
        ("config get topic nothing-like-it", 4, "no such topic: nothing-like-it"),
        ("config get broker 5", 0, ""),
        ("config get broker", 2, "Missing argument 'NAME'"),
    ],
)
def test_an_unknown_resource_has_no_empty_configuration(
    node: Node, words: str, status: int, said: str
) -> None:
    found, _, err = node.run(*words.split())
    assert found == status
    assert said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("acl remove --principal User:nobody", "these options select no ACL (`quorate acl list`"),
        ("feature upgrade metadata.versio=20", "no such feature: metadata.versio (did you mean m"),
        ("feature downgrade nothing-like-it=1", "no such feature: nothing-like-it (`quorate feat"),
        ("user remove nobody", "no such user: nobody"),
        ("broker unregister 77", "BROKER_ID_NOT_REGISTERED: "),
        ("broker uncordon 77", "BROKER_ID_NOT_REGISTERED: "),
    ],
)
@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_what_acts_on_nothing_ends_with_4(node: Node, words: str, said: str, how: str) -> None:
    takes_yes = "--yes" in node.run(*words.split()[:2], "--help")[1]
    status, out, err = node.run(*words.split(), *([how] if takes_yes or how != "--yes" else []))
    assert (status, out) == (4, "")
    assert err.startswith(f"error: {said}")


def test_a_document_of_nothing_removed_is_whole(node: Node) -> None:
    status, out, _ = node.run("acl", "remove", "--principal", "User:no", "--yes", "-o", "json")
    assert (status, json.loads(out)["rows"]) == (4, [])
    assert node.run("acl", "list", "--principal", "User:no")[0] == 0, "a question, and its answer"


@pytest.mark.parametrize(
    "words",
    [
        "config delete topic orders retention.ms",
        "config subtract topic orders cleanup.policy=compact",
        "broker uncordon 5",
    ],
)
@pytest.mark.parametrize("how", [(), ("--dry-run",)])
def test_what_is_so_already_ends_well(node: Node, words: str, how: tuple[str, ...]) -> None:
    status, _, err = node.run(*words.split(), *how)
    assert (status, err) == (0, "")


def test_the_state_has_no_such_name(node: Node, tmp_path: Path) -> None:
    status, out, err = node.run("state", str(node.data_dir), "--kind", "topic", "--name", "ordes")
    assert (status, out) == (4, "")
    assert err.startswith("error: there is no topic named 'ordes' in this state")
    assert node.run("state", str(node.data_dir), "--kind", "topic", "--name", "orders")[0] == 0


def test_options_may_stand_between_noun_and_verb(node: Node) -> None:
    status, out, err = node.run("topic", "-o", "json", "--timeout", "5", "list")
    assert (status, err) == (0, "")
    assert '"kind": "TopicList"' in out
    nowhere = ("--bootstrap", "127.0.0.1:1")
    assert node.run("topic", *nowhere, "list")[0] == 7
    assert node.run("quorum", *nowhere, "describe", "status")[0] == 7
    assert node.run("quorum", "describe", *nowhere, "status")[0] == 7
    assert "--bootstrap" not in node.run("topic", "--help")[1]


def test_names_of_operations_are_read_in_any_case(node: Node) -> None:
    made = node.ask("acl", "add", "User:a", "--operation", "READ", "--topic", "t", "--dry-run")
    assert made["kind"] == "AclsAdded"
    assert node.run("config", "get", "TOPIC", "orders")[0] == 0


def test_a_long_name_leaves_room_for_its_partitions(node: Node) -> None:
    _, out, _ = node.run("topic", "describe", LONG)
    assert out.startswith(f"topic:     {LONG}\n")
    assert max(map(len, out.splitlines())) <= 100
    assert node.run("topic", "describe", "orders", LONG)[1].count(LONG) == 3
