"""Secrets reach replicas, and operators that ask for them; every other path hides them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from quorate.client import TOPIC, Client, LogPosition
from quorate.services.access import AccessPolicy
from quorate.services.log_redaction import redacted_batches
from quorum.batch import encode_batch, record_values, scan_batches
from quorum.transport.node_names import NodeNames
from quorum.v1 import metadata_pb2
from statemachine.codec import batch_headers, decode_record, encode_kafka, encode_record
from statemachine.codec_kafka import carried_headers
from statemachine.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from statemachine.redacted_records import possible_secrets, without_secrets
from statemachine.redaction import REDACTED
from tests.support.served_node import cluster, serving

USER = UserScramCredentialRecord("u", 2, b"TOPSALT" * 4, b"TOPSTORED" * 7, b"TOPSERVER" * 7, 4096)
PASSWORD = ConfigRecord(4, "1", "listener.name.SSL.Keystore.PASSWORD", "TOPPASSWORD")
PLAIN = ConfigRecord(2, "t", "retention.ms", "7")
SECRETS = (b"TOPSALT", b"TOPSTORED", b"TOPSERVER", b"TOPPASSWORD")
SHOWN = {
    "raw": metadata_pb2.RECORD_FORM_ENCODED,
    "typed": metadata_pb2.RECORD_FORM_TYPED,
}


def holds_secrets(data: bytes) -> bool:
    found = [each for each in SECRETS if each in data]
    assert not found or len(found) == len(SECRETS), found
    return bool(found)


async def fetched(client: Client, form: Any, *, secrets: bool) -> bytes:
    request = metadata_pb2.FetchLogRequest(record_form=form, include_secrets=secrets)
    return (await client.fetch_log(request)).to_message().SerializeToString()


async def watched(client: Client, form: Any, *, secrets: bool, from_offset: int | None) -> bytes:
    """Everything that a watch sends up to the end that the log has now."""
    stub = client._nodes.node(client._nodes.addresses[0]).metadata
    request = metadata_pb2.WatchRequest(
        record_form=form, include_secrets=secrets, from_offset=from_offset
    )
    call, found = stub.Watch(request), b""
    async for response in call:
        found += response.SerializeToString()
        is_end = response.state.is_last or response.changes.batches
        if is_end:
            break
    call.cancel()
    return bytes(found)


Path_ = Callable[[Client, Any, bool], Awaitable[bytes]]
PATHS: dict[str, Path_] = {
    "FetchLog": lambda client, form, secrets: fetched(client, form, secrets=secrets),
    "Watch, state": lambda client, form, secrets: watched(
        client, form, secrets=secrets, from_offset=None
    ),
    "Watch, changes": lambda client, form, secrets: watched(
        client, form, secrets=secrets, from_offset=0
    ),
}


def with_client(
    scenario: Callable[[Any, Client], Awaitable[None]], policy: AccessPolicy | None = None
) -> None:
    async def run() -> None:
        _, (node,) = cluster(1)
        node.commit(*map(encode_record, (USER, PASSWORD, PLAIN)))
        async with serving(node, policy=policy), Client([node.address]) as client:
            await scenario(node, client)

    asyncio.run(run())


@pytest.mark.parametrize("form", SHOWN)
@pytest.mark.parametrize("path", PATHS)
def test_a_path_hides_secrets_until_they_are_asked_for(path: str, form: str) -> None:
    async def scenario(_node: Any, client: Client) -> None:
        hidden = await PATHS[path](client, SHOWN[form], False)
        assert not holds_secrets(hidden)
        assert REDACTED.encode() in hidden
        assert b"retention.ms" in hidden
        assert holds_secrets(await PATHS[path](client, SHOWN[form], True))

    with_client(scenario)


@pytest.mark.parametrize("path", PATHS)
def test_only_an_operator_may_ask(path: str) -> None:
    """A client with every right that ACLs can give is refused; without asking it gets the rest."""
    everything = AccessControlEntryRecord(
        b"i" * 16, 2, "__cluster_metadata", 3, "User:ANONYMOUS", "*", 2, 3
    )
    form = metadata_pb2.RECORD_FORM_ENCODED
    operators: frozenset[str] = frozenset()

    async def scenario(node: Any, client: Client) -> None:
        if not operators:
            node.commit(encode_record(everything))
            with pytest.raises(Exception, match="only operators may read secrets"):
                await PATHS[path](client, form, True)
        assert holds_secrets(await PATHS[path](client, form, bool(operators))) is bool(operators)

    with_client(scenario, AccessPolicy(NodeNames("node-{id}.test"), operators))
    operators = frozenset({"User:ANONYMOUS"})
    with_client(scenario, AccessPolicy(NodeNames("node-{id}.test"), operators))


def test_configurations_are_described_without_them() -> None:
    async def scenario(_node: Any, client: Client) -> None:
        found = await client.describe_configs([(4, "1"), (TOPIC, "t")])  # type: ignore[list-item]
        assert not holds_secrets(found.to_message().SerializeToString())

    with_client(scenario)


def test_a_consumer_goes_on_from_the_logs_own_digest() -> None:
    """The redacted batch has other bytes; a stored position must still be verified by digest."""

    async def scenario(node: Any, client: Client) -> None:
        node.commit(encode_record(TopicRecord("t", b"t" * 16)))
        consumer = client.consumer()
        while consumer.position is None or consumer.position.offset < node.log_end.offset:
            await consumer.poll()
        position = consumer.position
        assert position.log_digest == await node.log_digest(position.offset)
        again = client.consumer(position=LogPosition.from_json(position.to_json()))
        node.commit(encode_record(NoOpRecord()))
        assert len(await again.poll()) == 1

    with_client(scenario)


@pytest.mark.parametrize("encode", [encode_record, encode_kafka])
def test_a_batch_keeps_everything_but_its_secrets(
    encode: Callable[[MetadataRecord], bytes],
) -> None:
    numbers = {"epoch": 3, "timestamp": 5, "producer_id": 7, "producer_epoch": 1}
    values = [encode(each) for each in (PLAIN, USER, PASSWORD)]
    headers = (("principal", b"tls:admin"),)
    data = encode_batch([encode(PLAIN)], base_offset=8, epoch=3, timestamp=4)
    if encode is encode_kafka:
        values[0] = encode_kafka(USER, headers=headers)
        values[1] = encode_kafka(PLAIN)
        mine = encode_batch(values, base_offset=9, base_sequence=2, **numbers)
    else:
        mine = encode_batch(values, base_offset=9, base_sequence=2, headers=headers, **numbers)
    hidden, changed = redacted_batches(data + mine)
    assert hidden.startswith(data)
    before, after = scan_batches(data + mine)[1], scan_batches(hidden)[1]
    assert changed == [before]
    ignored = {"crc": 0, "size": 0}
    assert after._replace(**ignored) == before._replace(**ignored)
    shown = record_values(hidden, after)
    records = [decode_record(value) for value in record_values(mine, scan_batches(mine)[0])]
    assert [decode_record(value) for value in shown] == [without_secrets(each) for each in records]
    if encode is encode_kafka:
        assert carried_headers(shown[0]) == list(headers) or batch_headers((), shown[0])
    assert redacted_batches(hidden) == (hidden, []) or not holds_secrets(hidden)


def test_batches_without_secrets_stay_the_same_object() -> None:
    data = encode_batch(
        [encode_record(PLAIN), encode_record(NoOpRecord())], base_offset=0, epoch=1, timestamp=1
    )
    assert redacted_batches(data)[0] is data


@pytest.mark.parametrize("word", ["PassWord", "secret", "sasl.JAAS.config", "my.credential"])
@pytest.mark.parametrize("encode", [encode_record, encode_kafka])
def test_the_quick_test_misses_no_secret(word: str, encode: Any) -> None:
    assert possible_secrets(encode(ConfigRecord(2, "t", word, "x")))
    assert possible_secrets(encode(USER))
    assert not possible_secrets(encode(ConfigRecord(2, "t", "retention.ms", "x")))


def test_what_a_later_release_wrote_is_hidden_whole() -> None:
    later = bytes((0x93, 11, 0x07, 0xC4, 1)) + b"x"
    data = encode_batch(
        [b"\x93\x0b\x00" + b"\xa1u\x07", later], base_offset=0, epoch=1, timestamp=1
    )
    hidden, changed = redacted_batches(data)
    assert len(changed) == 1
    assert [decode_record(v) for v in record_values(hidden, scan_batches(hidden)[0])] == [
        NoOpRecord(),
        NoOpRecord(),
    ]
