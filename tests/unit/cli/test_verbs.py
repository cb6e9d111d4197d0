"""Every method of the client has a verb on the command line, or a reason to have none."""

from __future__ import annotations

import inspect

import click

from quorate.cli.main import cli
from quorate.client import Client
from quorum.v1 import commands_pb2 as wire

VERBS = {
    "add_voter": "quorum add-voter",
    "alter_configs": "config set",
    "alter_user_scram_credentials": "user add",
    "assign_replicas_to_dirs": "broker assign",
    "cordon_log_dirs": "broker cordon",
    "create_acls": "acl add",
    "create_partitions": "topic add-partitions",
    "create_snapshot": "snapshot now",
    "create_topic": "topic create",
    "delete_acls": "acl remove",
    "delete_topic": "topic delete",
    "describe_acls": "acl list",
    "describe_cluster": "broker list",
    "describe_configs": "config get",
    "describe_features": "feature describe",
    "describe_quorum": "quorum describe status",
    "describe_topics": "topic describe",
    "describe_user_scram_credentials": "user list",
    "elect_leaders": "topic elect-leaders",
    "heartbeat": "broker register",
    "list_topics": "topic list",
    "register_broker": "broker register",
    "remove_voter": "quorum remove-voter",
    "set_config": "config set",
    "transfer_leadership": "quorum transfer-leader",
    "unregister_broker": "broker unregister",
    "update_features": "feature upgrade",
    "update_voter": "quorum update-voter",
    "watch": "watch",
}
WITHOUT_A_VERB = {
    "allocate_producer_ids": "brokers take blocks of ids; a person has no use for one",
    "alter_partition": "the leader of a partition reports its in-sync set",
    "begin_epoch": "a program takes its name, or goes on after a failure",
    "close": "ends the client",
    "consumer": "a program reads the log with it; `log dump` and `audit` show it to people",
    "delete_records": "always refused",
    "describe_image": "compares replicas; `log verify` prints the digest of a directory",
    "fetch_log": "what `consumer` is made of",
    "find_stream": "what `import` writes with",
    "init_producer_id": "a producer's own",
    "leader": "an address that the client remembers",
    "list_offsets": "what `consumer` begins with",
    "commit_position": "what a program does that consumes the log",
    "fetch_positions": "what such a program does when it starts",
    "read_state": "what `consumer` reads instead of records that were trimmed",
    "offset_for_leader_epoch": "what `consumer` detects truncation with",
    "write": "what every other write is made of",
}
CONFIG_VERBS = {
    wire.CONFIG_OPERATION_SET: "config set",
    wire.CONFIG_OPERATION_DELETE: "config delete",
    wire.CONFIG_OPERATION_APPEND: "config append",
    wire.CONFIG_OPERATION_SUBTRACT: "config subtract",
}
FEATURE_VERBS = {
    wire.FEATURE_UPGRADE_TYPE_UPGRADE: "feature upgrade",
    wire.FEATURE_UPGRADE_TYPE_SAFE_DOWNGRADE: "feature downgrade",
    wire.FEATURE_UPGRADE_TYPE_UNSAFE_DOWNGRADE: "feature downgrade --unsafe",
}


def command(words: str) -> click.Command:
    found: click.Command = cli
    for word in words.split():
        if word.startswith("--"):
            assert word in {name for each in found.params for name in each.opts}
            continue
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None, words
        found = inner
    assert not isinstance(found, click.Group)
    return found


def test_every_method_of_the_client_has_a_verb_or_a_reason() -> None:
    methods = {name for name, _ in inspect.getmembers(Client) if not name.startswith("_")}
    assert methods == VERBS.keys() | WITHOUT_A_VERB.keys()
    assert not VERBS.keys() & WITHOUT_A_VERB.keys()


def test_the_verbs_exist() -> None:
    for words in (*VERBS.values(), *CONFIG_VERBS.values(), *FEATURE_VERBS.values()):
        command(words)


def test_every_operation_on_configs_and_features_has_a_verb() -> None:
    assert set(wire.ConfigOperation.values()) == {0, *CONFIG_VERBS}
    assert set(wire.FeatureUpgradeType.values()) == {0, *FEATURE_VERBS}


def test_every_verb_that_writes_metadata_can_be_tried() -> None:
    writing = {"add", "remove", "set", "delete", "append", "subtract", "create", "add-partitions",
               "elect-leaders", "register", "unregister", "upgrade", "downgrade"}  # fmt: skip
    for noun in ("acl", "broker", "config", "feature", "topic", "user"):
        group = cli.get_command(click.Context(cli), noun)
        assert isinstance(group, click.Group)
        for name in writing & set(group.list_commands(click.Context(group))):
            options = {each for one in command(f"{noun} {name}").params for each in one.opts}
            assert {"--dry-run", "--reason"} <= options, (noun, name)
