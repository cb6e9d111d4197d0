"""A program's own ``token`` function: while it raises, nothing is sent, and the error says why."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from quorate.client import TOPIC, Client, OutcomeUnknownError, UnavailableError
from quorate.services.ports import Outcome, VoterChange
from quorum.v1 import common_pb2
from tests.support.certificates import authority, node
from tests.support.served_node import FakeNode, cluster, serving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")

DISK = bytes(range(16))
PLACE = common_pb2.Endpoint(name="CONTROLLER", host="localhost", port=9093)
IN_VAIN_SECONDS = 2.0
RAISED = r"the function `token` raised LookupError\('no login'\)"


class Login:
    """What the program gives as ``token``."""

    def __init__(self) -> None:
        self.is_down = False
        self.calls = 0
        self.has_raised = threading.Event()
        self.may_return = threading.Event()
        self.may_return.set()

    def __call__(self) -> str:
        self.calls += 1
        self.may_return.wait(60)
        if self.is_down:
            self.has_raised.set()
            raise LookupError("no login")
        return "a.b.c"


@asynccontextmanager
async def with_node(folder: Path) -> AsyncIterator[tuple[FakeNode, Login, Callable[..., Client]]]:
    """A node with TLS, and clients of it; the function of one of them."""
    authority(folder, "ours")
    files = node(folder, "ours", "n1", "DNS:localhost")
    _, (served,) = cluster(1)
    credentials = grpc.ssl_server_credentials(
        [(files.key.read_bytes(), files.certificate.read_bytes())]
    )
    trusted = grpc.ssl_channel_credentials(files.authorities.read_bytes())
    login = Login()

    def client() -> Client:
        return Client([served.address], credentials=trusted, token=login, timeout_seconds=30)

    async with serving(served, credentials=credentials):
        yield served, login, client


def goes_down_after_describing(client: Client, login: Login, *, stays_down: bool) -> None:
    """The quorum is described before it is changed: the change alone gets no token."""
    describe = client.describe_quorum

    answers: list[Any] = []

    async def described(**options: Any) -> Any:
        if not answers:
            answers.append(await describe(**options))
        login.is_down = not login.has_raised.is_set() or stays_down
        return answers[0]

    client.describe_quorum = described  # type: ignore[method-assign]


def test_a_change_that_got_no_token_was_not_sent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with with_node(tmp_path) as (served, login, made), made() as client:
            await client.describe_quorum()
            goes_down_after_describing(client, login, stays_down=True)
            with pytest.raises(UnavailableError, match=f"AddVoter: no leader took it.*{RAISED}"):
                await client.add_voter(4, DISK, [PLACE], timeout_seconds=IN_VAIN_SECONDS)
            assert served.voter_changes == []
            assert login.calls > 2, "it is asked again until the deadline"

    asyncio.run(scenario())


def test_a_change_whose_token_comes_too_late_was_not_sent(tmp_path: Path) -> None:
    """Its time is over while the function has neither returned nor raised."""

    async def scenario() -> None:
        async with with_node(tmp_path) as (served, login, made), made() as client:
            seen = await client.describe_quorum()

            async def described() -> Any:
                login.may_return.clear()
                return seen

            client.describe_quorum = described  # type: ignore[method-assign,assignment]
            try:
                with pytest.raises(UnavailableError, match="AddVoter: no leader took it"):
                    await client.add_voter(4, DISK, [PLACE], timeout_seconds=IN_VAIN_SECONDS)
            finally:
                login.may_return.set()
            assert login.calls == 2
            assert served.voter_changes == []

    asyncio.run(scenario())


def test_a_change_is_sent_when_the_function_returns_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with with_node(tmp_path) as (served, login, made), made() as client:
            goes_down_after_describing(client, login, stays_down=False)
            adding = asyncio.ensure_future(client.add_voter(4, DISK, [PLACE], timeout_seconds=30))
            await asyncio.to_thread(login.has_raised.wait, 30)
            login.is_down = False
            assert (await adding).offset == 77
            assert len(served.voter_changes) == 1

    asyncio.run(scenario())


def test_a_change_that_got_its_token_and_no_answer_is_in_doubt(tmp_path: Path) -> None:
    """Though the function raises at every later call."""

    async def scenario() -> None:
        async with with_node(tmp_path) as (served, login, made), made() as client:

            async def taken(_change: VoterChange) -> Outcome:
                login.is_down = True
                return await asyncio.Future()

            served.change_voters = taken  # type: ignore[method-assign,assignment]
            await client.describe_quorum()
            with pytest.raises(OutcomeUnknownError, match="AddVoter: no answer to it"):
                await client.add_voter(4, DISK, [PLACE], timeout_seconds=IN_VAIN_SECONDS)

    asyncio.run(scenario())


def test_a_write_that_got_no_token_names_the_function(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with with_node(tmp_path) as (_, login, made), made() as client:
            login.is_down = True
            with pytest.raises(UnavailableError, match=f"{RAISED}; the command was never sent"):
                await client.set_config(
                    TOPIC, "orders", "retention.ms", "1", timeout=IN_VAIN_SECONDS
                )
            login.is_down = False
            await client.set_config(TOPIC, "orders", "retention.ms", "1", timeout=30)

    asyncio.run(scenario())
