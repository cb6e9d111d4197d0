"""Mistakes in the arguments of the client: refused where they are made, in words."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from quorate.client import TOPIC, BlockingClient, Client, ClientError, InvalidArgumentError
from quorate.client.arguments import message_of
from quorum.v1.commands_pb2 import AclEntry, CreatePartitions

NOWHERE = ["127.0.0.1:1"]


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_that_never_ends_or_has_ended_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"timeout_seconds must be above 0, not {seconds}"):
        BlockingClient(NOWHERE, timeout_seconds=seconds)


def test_a_timeout_of_a_call_is_a_number() -> None:
    async def scenario() -> None:
        async with Client(NOWHERE) as client:
            nan = float("nan")
            for call in (
                lambda: client.set_config(TOPIC, "t", "retention.ms", "1", timeout=nan),
                lambda: client.create_snapshot(timeout_seconds=nan),
                lambda: client.transfer_leadership(timeout_seconds=nan),
            ):
                async with asyncio.timeout(5):
                    with pytest.raises(ValueError, match="a timeout must be a number of seconds"):
                        await cast("Any", call)()

    asyncio.run(scenario())


def test_a_single_text_is_no_list_of_addresses() -> None:
    with pytest.raises(TypeError, match=r"addresses must be a list, as \['127\.0\.0\.1:9190'\]"):
        BlockingClient("127.0.0.1:9190")


def mistake(method: str, *arguments: Any, **options: Any) -> str:
    """Return the words of a call with a mistake in its arguments, of which nothing is sent.

    The client's own mistakes are `ClientError`, and what Python calls them.
    """
    with BlockingClient(NOWHERE) as client, pytest.raises(InvalidArgumentError) as caught:
        getattr(client, method)(*arguments, **options)
    assert isinstance(caught.value, ClientError)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "found"), [(5, "int"), (None, "None"), (b"5", "bytes"), (True, "bool")]
)
def test_a_value_of_a_configuration_is_text(value: object, found: str) -> None:
    said = f"the value of retention.ms must be text, not {found}"
    assert mistake("set_config", TOPIC, "t", "retention.ms", value) == said
    assert mistake("create_topic", "t", configs={"retention.ms": value}) == said


@pytest.mark.parametrize(
    ("method", "arguments", "options", "said"),
    [
        ("create_topic", (b"t",), {}, "name must be text, not bytes"),
        ("create_topic", ("\ud800",), {}, "name has a character that is none in UTF-8"),
        ("create_topic", ("t",), {"partitions": -2}, "partitions must not be below 0, or -1 for"),
        ("create_topic", ("t",), {"partitions": True}, "partitions must be a whole number, not bo"),
        ("create_topic", ("t",), {"partitions": "3"}, "partitions must be a whole number, not str"),
        ("create_topic", ("t",), {"partitions": 1.0}, "partitions must be a whole number, not fl"),
        ("create_topic", ("t",), {"partitions": 1 << 31}, "partitions must be from -2147483648 to"),
        ("create_topic", ("t",), {"replication_factor": -3}, "replication_factor must not be bel"),
        ("create_topic", ("t",), {"configs": ["a"]}, "configs must be a mapping, not list"),
        ("create_topic", ("t",), {"assignments": "1:2"}, "assignments must be a list, as ['1:2']"),
        ("create_topic", ("t",), {"assignments": [1]}, "each of assignments must be a list, not i"),
        ("create_topic", ("t",), {"assignments": [["1"]]}, "each broker in assignments must be a"),
        ("create_topic", ("t",), {"dry_run": "no"}, "dry_run must be True or False, not str"),
        ("create_partitions", ("t", -1), {}, "partition_count must not be below 0: -1"),
        ("create_partitions", ("t", False), {}, "partition_count must be a whole number, not bool"),
        ("create_partitions", (None, 3), {}, "topic must be text, not None"),
        ("delete_topic", ("t",), {"topic_id": "x"}, "topic_id must be bytes, not str"),
        ("alter_configs", (TOPIC, "t", "a=b"), {}, "alterations must be a list, as ['a=b'], not"),
        ("alter_configs", (TOPIC, "t", {"a": "b"}), {}, "alterations must be a list, not dict"),
        ("alter_configs", (TOPIC, "t", ["a"]), {}, "each of alterations must be a message Config"),
        ("alter_configs", (TOPIC, 7, []), {}, "resource_name must be text, not int"),
        ("alter_configs", ("topic", "t", []), {}, "resource_type must be a whole number, not str"),
        ("set_config", ("topic", "t", "a", "b"), {}, "resource_type must be a whole number, not s"),
        ("set_config", (TOPIC, "t", 3, "b"), {}, "name must be text, not int"),
        ("elect_leaders", ("t",), {"partitions": 0}, "partitions must be a list, not int"),
        ("elect_leaders", ("t",), {"partitions": "0"}, "partitions must be a list, as ['0'], not"),
        ("unregister_broker", ("1",), {}, "broker_id must be a whole number, not str"),
        ("cordon_log_dirs", (1, b"d" * 16), {}, "log_dirs must be a list, as [b'dddd"),
        ("update_features", ("a=1",), {}, "updates must be a list, as ['a=1'], not a single str"),
        ("create_acls", (AclEntry(),), {}, "entries must be a list, not AclEntry"),
        ("delete_acls", ([AclEntry()],), {}, "each of filters must be a message AclFilter, not A"),
        ("register_broker", (3,), {}, "registration must be a message RegisterBroker, not int"),
        ("write", ({},), {}, "command must be a message Command, not dict"),
        ("describe_topics", ("orders",), {}, "names must be a list, as ['orders'], not a single"),
        ("describe_configs", ((TOPIC, "t"),), {}, "each of resources must be a pair of type and n"),
        ("describe_user_scram_credentials", ("a",), {}, "users must be a list, as ['a'], not a si"),
        ("fetch_positions", ("g",), {}, "groups must be a list, as ['g'], not a single str"),
        ("list_topics", (), {"limit": "9"}, "limit must be a whole number, not str"),
        ("add_voter", (True, b"", []), {}, "voter_id must be a whole number, not bool"),
        ("remove_voter", (1, "x"), {}, "directory_id must be bytes, not str"),
    ],
)  # fmt: skip
def test_an_argument_of_another_type_or_range_is_named(
    method: str, arguments: tuple[Any, ...], options: dict[str, Any], said: str
) -> None:
    assert mistake(method, *arguments, **options).startswith(said)


def test_every_number_that_is_whole_is_taken() -> None:
    class Three:
        def __index__(self) -> int:
            return 3

    made = message_of(CreatePartitions, topic_name="t", partition_count=Three())
    assert made == CreatePartitions(topic_name="t", partition_count=3)
