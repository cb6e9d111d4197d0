"""``--dry-run`` is as strict as the act: what one refuses the other refuses, with the same words.

Each verb that writes metadata has a request that is refused, and one that is not. The dry run of
the second one says what the act would do, and does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from quorate.cli.main import cli
from tests.integration.lone_node import Node

REFUSED = (
    "topic create taken --assignment 5",
    "topic create bad/name --assignment 5",
    "topic create t --assignment 99",
    "topic create t --partitions 3 --replication-factor 7",
    "topic create t --assignment 5 --config no.such.key=1",
    "topic delete absent --yes",
    "topic add-partitions taken --total 1",
    "topic add-partitions absent --total 3",
    "topic elect-leaders absent",
    "topic elect-leaders taken --partition 9",
    "config set topic absent retention.ms=1",
    "config set topic taken retention.ms=x",
    "config set topic taken no.such.key=1",
    "config append topic taken retention.ms=1",
    "config subtract topic absent cleanup.policy=delete",
    "config delete topic absent retention.ms",
    "feature upgrade metadata.version=9999",
    "feature upgrade no.such.feature=1",
    "feature downgrade metadata.version=1",
    "broker unregister 98 --yes",
    "broker register 5 --listener PLAINTEXT://b5:9092",
    "broker cordon 98",
    "broker uncordon 98",
    "acl remove --operation nothing --yes",
    "acl remove --principal User:absent --yes",
    "acl add nobody --operation read --topic t",
    "user remove absent --yes",
    "quorum transfer-leader 9",
    "quorum remove-voter 9 --yes",
    "quorum remove-voter 1 --yes",
)
ACCEPTED = (
    "topic create dry --assignment 5",
    "topic add-partitions taken --total 2 --assignment 5",
    "topic elect-leaders taken --partition 0",
    "config set topic taken retention.ms=86400000",
    "config append topic taken cleanup.policy=compact",
    "config subtract topic taken cleanup.policy=compact",
    "config delete topic taken retention.ms",
    "acl add User:dry --operation read --topic taken",
    "acl remove --principal User:dry --yes",
    "topic delete dry --yes",
)
"""In an order in which each can be carried out."""
TRIED_ELSEWHERE = {
    "import": "needs a Kafka directory: tests/integration/test_import.py",
    "user add": "needs a password on standard input: tests/unit/cli",
    "broker assign": "needs a directory id of a broker: tests of the broker's agent",
    "quorum add-voter": "needs a second node: tests/integration/test_membership.py",
    "quorum update-voter": "likewise",
    "snapshot now": "what stands in its way: tests/unit/server/test_snapshot_requests.py",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node"), "native")
    broker = node.start("broker", "register", "5", "--listener", "PLAINTEXT://b5:9092", "--stay")
    try:
        node.wait_for(broker, "sending heartbeats")
        assert node.run("topic", "create", "taken", "--assignment", "5")[0] == 0
        yield node
    finally:
        broker.terminate()
        broker.communicate(timeout=30)
        assert node.stop() == 0


@pytest.mark.parametrize("words", REFUSED)
def test_a_dry_run_refuses_what_the_act_refuses(cluster: Node, words: str) -> None:
    tried = cluster.run(*words.split(), "--dry-run")
    done = cluster.run(*words.split())
    assert done[0] != 0, "this request was to be refused"
    assert (tried[0], tried[2]) == (done[0], done[2])
    assert re.search(r"^(error|Error): ", done[2], re.M)


@pytest.mark.parametrize("words", ACCEPTED)
def test_a_dry_run_does_nothing_and_the_act_does_it(cluster: Node, words: str) -> None:
    before = state(cluster)
    tried = cluster.ask(*words.split(), "--dry-run")
    assert tried["dry_run"] is True
    assert state(cluster) == before
    done = cluster.ask(*words.split())
    assert done["kind"] == tried["kind"]
    assert set(done) == set(tried)


def state(cluster: Node) -> list[object]:
    """What the requests above may change."""
    return [
        cluster.ask("topic", "list")["rows"],
        cluster.ask("topic", "describe", "taken")["rows"],
        cluster.ask("config", "get", "topic", "taken")["rows"],
        cluster.ask("acl", "list")["rows"],
    ]


def with_dry_run(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from with_dry_run(inner, (*path, name))
    elif any("--dry-run" in each.opts for each in command.params):
        yield " ".join(path)


LOCAL = {"adopt", "release", "recover apply"}
"""They change a directory, and plan it first: tests/unit/adoption, tests/unit/recovery."""


def test_every_verb_with_a_dry_run_is_in_the_table() -> None:
    tried = {" ".join(words.split()[:2]) for words in REFUSED}
    missing = {path for path in with_dry_run(cli) if path not in tried}
    assert missing - LOCAL == set(TRIED_ELSEWHERE)
