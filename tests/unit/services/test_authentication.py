"""Passwords proved to a node with TLS: exchanges, tokens, and what a stranger learns."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest

from quorate.client import TOPIC, Client, OutcomeUnknownError, RefusedError, scram_upsertion
from quorate.server.node import ServerNode
from quorate.services.authentication import EXCHANGES_PER_CALLER_MAX
from quorum.scram import SHA_256
from quorum.v1 import commands_pb2 as wire
from quorum.v1 import metadata_pb2
from quorum.v1.authentication_pb2 import AuthenticateRequest
from quorum.v1.authentication_pb2_grpc import AuthenticationServiceStub
from tests.support.bound_node import bound_node
from tests.support.certificates import authority, caller, node
from tests.support.scram_calls import exchange, token_of

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
DELAY_MS = 300
AUTHENTICATE = "/quorum.v1.AuthenticationService/Authenticate"


class Setting(NamedTuple):
    """A node with the user alice, an operator, and what a stranger reaches the node with."""

    sasl: str
    node: ServerNode
    admin: Client
    nobody: grpc.ChannelCredentials

    def client(self, **options: Any) -> Client:
        given = {"user": "alice", "password": "pencil", **options}
        return Client([self.sasl], credentials=self.nobody, timeout_seconds=20, **given)


def with_node(
    folder: Path, scenario: Callable[[Setting], Awaitable[None]], **security: Any
) -> None:
    async def run() -> None:
        authority(folder, "ours")
        server = node(folder, "ours", "n1", "DNS:node-1.quorum.test")
        files = caller(folder, "ours", "admin", "DNS:admin.test")
        shown = [each.read_bytes() for each in (files.authorities, files.key, files.certificate)]
        nobody = grpc.ssl_channel_credentials(shown[0])
        options = {"failed_authentication_delay_ms": DELAY_MS, **security}
        async with bound_node(folder, server, **options) as (address, sasl, made):
            credentials = grpc.ssl_channel_credentials(*shown)
            async with Client([address], credentials=credentials) as admin:
                await admin.alter_user_scram_credentials([scram_upsertion("alice", "pencil")])
                grants = [
                    wire.AclEntry(
                        resource_type=kind,
                        resource_name=name,
                        pattern_type=3,
                        principal="User:alice",
                        host="*",
                        operation=2,
                        permission_type=3,
                    )
                    for kind, name in ((2, "orders"), (2, "__cluster_metadata"))
                ]
                await admin.create_acls(grants)
                await scenario(Setting(sasl, made, admin, nobody))

    asyncio.run(run())


async def code_of(client: Client, name: str = "orders") -> str:
    """Write a configuration as a client: the code of its refusal; empty when it is applied."""
    try:
        await client.set_config(TOPIC, name, "retention.ms", "7")
    except RefusedError as error:
        return error.code_name
    return ""


def test_a_password_gives_the_rights_of_its_user(tmp_path: Path) -> None:
    async def scenario(at: Setting) -> None:
        async with at.client() as client:
            assert await code_of(client) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert await code_of(client, "other") == "TOPIC_AUTHORIZATION_FAILED"
            with pytest.raises(RefusedError, match="User:alice may not: DESCRIBE CLUSTER"):
                await client.describe_quorum(from_leader=False)

    with_node(tmp_path, scenario)


def test_the_audit_log_names_the_user(tmp_path: Path) -> None:
    async def scenario(at: Setting) -> None:
        await at.admin.alter_user_scram_credentials([scram_upsertion("admin.test", "pencil")])
        async with at.client(user="admin.test") as operator:
            written = await operator.set_config(
                wire.CONFIG_RESOURCE_TYPE_BROKER, "", "log.retention.ms", "9"
            )
        event = await anext(aiter(at.admin.watch(from_offset=written.offset - 1)))
        headers = {each.name: each.value for each in event.headers}
        assert headers["principal"] == b"scram:admin.test"

    with_node(tmp_path, scenario)


def test_a_user_without_rights_hears_which_right_a_command_needs(tmp_path: Path) -> None:
    """And not of the producer id, which comes with any right to change something."""

    async def scenario(at: Setting) -> None:
        await at.admin.alter_user_scram_credentials([scram_upsertion("bob", "eraser")])
        async with at.client(user="bob", password="eraser") as bob:
            for command, lack in (
                (wire.Command(create_topic=wire.CreateTopic(name="new")), "CREATE TOPIC new"),
                (wire.Command(elect_leaders=wire.ElectLeaders()), "ALTER CLUSTER kafka-cluster"),
            ):
                with pytest.raises(RefusedError, match=f"User:bob may not: {lack}$"):
                    await bob.write(command)

    with_node(tmp_path, scenario)


def test_wrong_passwords_and_unknown_users_are_refused_alike_and_equally_late(
    tmp_path: Path,
) -> None:
    async def refusal(at: Setting, name: str, password: str) -> tuple[str, float]:
        began = asyncio.get_running_loop().time()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await token_of(at.sasl, at.nobody, name, password)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        return str(refused.value.details()), asyncio.get_running_loop().time() - began

    async def scenario(at: Setting) -> None:
        found = [await refusal(at, *each) for each in (("alice", "pen"), ("bob", "pencil"))]
        assert len({said for said, _ in found}) == 1
        for _, seconds in found:
            assert seconds >= DELAY_MS / 1000
        counted = "quorate_authentications_total"
        labels = {"mechanism": "SCRAM-SHA-512", "outcome": "refused"}
        assert at.node._registry.get_sample_value(counted, labels) == 2

    with_node(tmp_path, scenario)


def test_an_unknown_user_gets_the_same_salt_each_time_as_a_known_one_does(tmp_path: Path) -> None:
    """Otherwise two questions would tell whether a name exists."""

    async def salt(at: Setting, name: str) -> bytes:
        async with grpc.aio.secure_channel(at.sasl, at.nobody) as channel:
            stub: Any = AuthenticationServiceStub(channel)  # type: ignore[no-untyped-call]
            call = stub.Authenticate(timeout=20)
            first = f"n,,n={name},r=abc".encode()
            await call.write(AuthenticateRequest(mechanism="SCRAM-SHA-512", data=first))
            challenge = (await call.read()).data
            call.cancel()
        return bytes(challenge.partition(b",")[2])

    async def scenario(at: Setting) -> None:
        for name in ("alice", "bob"):
            assert await salt(at, name) == await salt(at, name)
        known, unknown, other = [await salt(at, name) for name in ("alice", "bob", "carol")]
        assert unknown != other
        assert len(known) == len(unknown)
        # It follows from the log alone, so every node and every process has the same.
        at.node._services.authentication._fallback_key = b"another"  # type: ignore[union-attr]
        assert await salt(at, "bob") == unknown

    with_node(tmp_path, scenario)


def test_a_client_with_a_wrong_password_is_told_so_at_once(tmp_path: Path) -> None:
    async def scenario(at: Setting) -> None:
        began = asyncio.get_running_loop().time()
        async with at.client(password="pen") as client:
            with pytest.raises(RefusedError, match="unknown user or wrong password"):
                await client.list_topics()
            with pytest.raises(RefusedError, match="unknown user or wrong password"):
                await client.set_config(TOPIC, "orders", "retention.ms", "7")
        assert asyncio.get_running_loop().time() - began < 10

    with_node(tmp_path, scenario)


def test_a_changed_or_removed_password_ends_streams_and_tokens(tmp_path: Path) -> None:
    async def scenario(at: Setting) -> None:
        token = await token_of(at.sasl, at.nobody, "alice", "pencil")
        async with (
            at.client() as client,
            at.client(user="", password="", token=token) as bearer,
        ):
            assert await code_of(client) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert await code_of(bearer) == "UNKNOWN_TOPIC_OR_PARTITION"
            watch = aiter(client.watch())
            await anext(watch)
            await at.admin.alter_user_scram_credentials([scram_upsertion("alice", "other")])
            with pytest.raises(RefusedError, match="SASL_AUTHENTICATION_FAILED"):
                await exhausted(watch)
            for each in (client, bearer):
                assert await is_unanswered(each)
                with pytest.raises(RefusedError, match="SASL_AUTHENTICATION_FAILED"):
                    await each.list_topics()
        async with at.client(password="other") as client:
            assert await code_of(client) == "UNKNOWN_TOPIC_OR_PARTITION"

    with_node(tmp_path, scenario)


async def is_unanswered(client: Client) -> bool:
    """Whether a write is refused for its sender, or ends as unknown if it was sent before."""
    try:
        return await code_of(client) == "SASL_AUTHENTICATION_FAILED"
    except OutcomeUnknownError:
        return True


async def exhausted(watch: AsyncIterator[Any]) -> None:
    async for _ in watch:
        pass


def test_a_token_that_the_node_forgets_is_renewed_under_the_writer(tmp_path: Path) -> None:
    """As after a restart, or at the end of its lifetime: the client notices nothing."""

    async def scenario(at: Setting) -> None:
        async with at.client() as client:
            assert await code_of(client) == "UNKNOWN_TOPIC_OR_PARTITION"
            await client.list_topics()
            policy = at.node._services.metadata._policy
            assert policy is not None
            assert policy.tokens is not None
            now_s = policy.tokens.now_s
            policy.tokens.now_s = lambda: now_s() + 2 * 3600
            assert await code_of(client) == "UNKNOWN_TOPIC_OR_PARTITION"
            await client.list_topics()

    with_node(tmp_path, scenario)


def test_no_password_travels_and_none_is_in_any_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario(at: Setting) -> None:
        await token_of(at.sasl, at.nobody, "alice", "pencil")
        with pytest.raises(grpc.aio.AioRpcError):
            await token_of(at.sasl, at.nobody, "alice", "eraser-in-a-drawer")

    with_node(tmp_path, scenario)
    assert "event=authentication_refused user=alice" in caplog.text
    for secret in ("pencil", "eraser-in-a-drawer"):
        assert secret not in caplog.text
        for file in tmp_path.rglob("*"):
            assert not file.is_file() or secret.encode() not in file.read_bytes(), file


def test_a_caller_has_few_exchanges_at_a_time(tmp_path: Path) -> None:
    async def scenario(at: Setting) -> None:
        async def status() -> grpc.StatusCode:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await exchange(at.sasl, at.nobody, "alice", "pen")
            return refused.value.code()

        found = await asyncio.gather(*(status() for _ in range(EXCHANGES_PER_CALLER_MAX + 3)))
        assert found.count(grpc.StatusCode.UNAUTHENTICATED) == EXCHANGES_PER_CALLER_MAX
        assert found.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 3

    with_node(tmp_path, scenario, failed_authentication_delay_ms=3000)


async def status_of(
    at: Setting, *messages: bytes, is_ended_here: bool = True
) -> tuple[grpc.StatusCode, str]:
    """Send messages of an exchange as they are: how it ends.

    What is written to a stream that ends meanwhile may hide why it ended.
    """
    async with grpc.aio.secure_channel(at.sasl, at.nobody) as channel:
        call = channel.stream_stream(AUTHENTICATE)(timeout=20)
        try:
            for each in messages:
                await call.write(each)
                await call.read()
            if is_ended_here:
                await call.done_writing()
            await call.read()
        except grpc.aio.AioRpcError:
            pass
        return await call.code(), str(await call.details())


def test_messages_that_are_none_are_refused(tmp_path: Path) -> None:
    def first(mechanism: str, data: bytes) -> bytes:
        return bytes(AuthenticateRequest(mechanism=mechanism, data=data).SerializeToString())

    async def scenario(at: Setting) -> None:
        good = first("SCRAM-SHA-256", b"n,,n=alice,r=abc")
        status = grpc.StatusCode
        for messages, code in (
            ((first("PLAIN", b""),), status.INVALID_ARGUMENT),
            ((first("SCRAM-SHA-256", b"nonsense"),), status.UNAUTHENTICATED),
            ((good, first("", b"nonsense")), status.UNAUTHENTICATED),
            ((b"\xff",), status.INVALID_ARGUMENT),
            ((good,), status.INVALID_ARGUMENT),
            ((), status.INVALID_ARGUMENT),
            ((first("SCRAM-SHA-256", b"n" * (5 << 20)),), status.RESOURCE_EXHAUSTED),
        ):
            assert (await status_of(at, *messages))[0] is code, messages
        at.node._services.closing.begin()
        assert (await status_of(at, is_ended_here=False))[0] is status.UNAVAILABLE

    with_node(tmp_path, scenario)


def test_a_message_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(at: Setting) -> None:
        monkeypatch.setattr("quorate.services.calls.MESSAGE_BYTES_MAX", 100)
        large = AuthenticateRequest(mechanism="SCRAM-SHA-256", data=b"n" * 100)
        code, why = await status_of(at, bytes(large.SerializeToString()))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "more than 100" in why

    with_node(tmp_path, scenario)


def test_an_exchange_that_stalls_ends(tmp_path: Path) -> None:
    async def scenario(at: Setting) -> None:
        at.node._services._reads.seconds = 0.05
        async with grpc.aio.secure_channel(at.sasl, at.nobody) as channel:
            call = channel.stream_stream(AUTHENTICATE)(timeout=20)
            assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    with_node(tmp_path, scenario)


def test_a_user_with_another_mechanism_is_unknown(tmp_path: Path) -> None:
    async def scenario(at: Setting) -> None:
        with pytest.raises(grpc.aio.AioRpcError):
            await exchange(at.sasl, at.nobody, "alice", "pencil", mechanism=SHA_256)

    with_node(tmp_path, scenario)


def test_nobody_but_an_operator_changes_an_operators_password(tmp_path: Path) -> None:
    """A client that may alter the cluster could make itself an operator otherwise."""

    async def scenario(at: Setting) -> None:
        alter = wire.AclEntry(
            resource_type=4,
            resource_name="kafka-cluster",
            pattern_type=3,
            principal="User:alice",
            host="*",
            operation=7,
            permission_type=3,
        )
        await at.admin.create_acls([alter])
        async with at.client() as client:
            await client.alter_user_scram_credentials([scram_upsertion("bob", "pencil")])
            with pytest.raises(RefusedError, match="change the password of an operator"):
                await client.alter_user_scram_credentials([scram_upsertion("admin.test", "x")])

    with_node(tmp_path, scenario)


def test_a_read_stream_ends_when_its_token_does(tmp_path: Path) -> None:
    """Queries share a stream that outlives a token; each message is checked."""

    async def scenario(at: Setting) -> None:
        token = await token_of(at.sasl, at.nobody, "alice", "pencil")
        async with at.client(user="", password="", token=token) as client:
            await client.list_topics()
            await at.admin.alter_user_scram_credentials(
                deletions=[wire.ScramDeletion(name="alice", mechanism=2)]  # type: ignore[arg-type]
            )
            with pytest.raises(RefusedError, match="SASL_AUTHENTICATION_FAILED"):
                await client.list_topics()

    with_node(tmp_path, scenario)


def test_a_held_fetch_is_answered_only_to_a_token_that_is_still_valid(tmp_path: Path) -> None:
    async def scenario(at: Setting) -> None:
        token = await token_of(at.sasl, at.nobody, "alice", "pencil")
        async with at.client(user="", password="", token=token) as client:
            end = (await at.admin.describe_quorum()).high_watermark
            request = metadata_pb2.FetchLogRequest(offset=end, max_wait_ms=19_000)
            fetch = asyncio.ensure_future(client.fetch_log(request))
            await client.list_topics()
            await at.admin.alter_user_scram_credentials([scram_upsertion("alice", "other")])
            with pytest.raises(RefusedError, match="SASL_AUTHENTICATION_FAILED"):
                await fetch

    with_node(tmp_path, scenario)
