"""What counts as a dead process, and that everything else does not (ADR 8)."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorum.transport import backoff as backoff_module
from quorum.transport import channel as channel_module
from quorum.transport.conversation import Ended, Ending
from quorum.transport.limits import CHANNELS_OF_HINTS_MAX
from quorum.transport.probe import Attempt, Reachability, SocketAddress
from tests.support import peer_harness
from tests.support.peer_harness import answer_to, fetch, replica, run, vote

pytestmark = pytest.mark.usefixtures("carrier")

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def peer_process(node_id: int) -> AsyncIterator[tuple[subprocess.Popen[bytes], str]]:
    """A replica in its own process, killed at the end if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.peer_process", str(node_id), peer_harness.CARRIER],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        try:
            assert process.stdout is not None
            port = int(await asyncio.to_thread(process.stdout.readline))
            yield process, f"127.0.0.1:{port}"
        finally:
            process.kill()


def test_a_killed_process_is_reported_as_refused_and_its_requests_fail() -> None:
    """SIGKILL an echoing peer after one turn; open requests fail and the refusal is reported."""

    async def scenario() -> None:
        async with replica(2) as follower, peer_process(1) as (process, address):
            follower.network.set_peers({1: address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: bool(follower.handler.received))
            process.kill()
            await follower.handler.until(lambda: follower.handler.refused == [1])
            follower.network.send(1, fetch(2, 2))
            await follower.handler.until(lambda: (1, 2) in follower.handler.failed)
            assert follower.handler.refused == [1]
            assert follower.link.counters.refusals == 1
            assert "refused" in follower.network.statuses()[0].problem.lower()

    run(scenario())


@pytest.mark.parametrize("sends_goodbye", [True, False])
def test_an_orderly_stop_is_not_a_death(sends_goodbye: bool) -> None:
    """Stop the server: the stream ends, reconnects are refused, no peer counts as dead.

    Without the goodbye, GOAWAY or the status alone must have the same effect.
    """

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            leader.echo()
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: bool(follower.handler.received))
            leader.handler.on_request = None
            follower.network.send(1, fetch(2, 2))
            await leader.handler.until(lambda: len(leader.handler.received) == 2)
            if sends_goodbye:
                await leader.server.stop()
            else:
                await leader.server.stop_without_goodbye()
            await follower.handler.until(lambda: (1, 2) in follower.handler.failed)
            # This one fails because a reconnect was refused, so the refusal has been evaluated.
            follower.network.send(1, fetch(2, 3))
            await follower.handler.until(lambda: (1, 3) in follower.handler.failed)
            assert follower.handler.refused == []

    run(scenario())


A = SocketAddress(2, "127.0.0.1", 1)  # type: ignore[arg-type]
REFUSED = (Attempt(Reachability.REFUSED), None)
UNKNOWN = (Attempt(Reachability.UNKNOWN), None)
RESET = (Attempt(Reachability.RESET), None)


def talked(ending: Ending) -> tuple[Attempt, Ending]:
    return Attempt(Reachability.ACCEPTED, A), ending


BROKEN = talked(Ending.BROKEN)


@pytest.mark.parametrize(
    ("script", "refusals"),
    [
        ([BROKEN, REFUSED, REFUSED, REFUSED], 1),
        ([BROKEN, REFUSED, BROKEN, REFUSED], 2),
        ([BROKEN, talked(Ending.NEVER_BEGAN), REFUSED], 1),
        ([BROKEN, RESET, REFUSED], 1),
        ([RESET, REFUSED], 0),
        ([REFUSED, REFUSED], 0),
        ([talked(Ending.CLOSED), REFUSED], 0),
        ([talked(Ending.NEVER_BEGAN), REFUSED], 0),
        ([talked(Ending.REFUSED_HELLO), REFUSED], 0),
        ([BROKEN, UNKNOWN, REFUSED], 0),
        ([BROKEN, talked(Ending.CLOSED), REFUSED], 0),
        ([BROKEN, talked(Ending.REFUSED_HELLO), REFUSED], 0),
    ],
    ids=[
        "once per break", "twice for two breaks", "dying listener accepts",
        "dying listener resets", "never established but reset", "never established",
        "closed in order", "no hello", "hello refused", "network trouble in between",
        "reconnected and closed", "someone else answers",
    ],
)  # fmt: skip
def test_only_a_break_followed_by_a_refusal_counts(
    script: list[tuple[Attempt, Ending | None]], refusals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drive the reconnect loop with scripted outcomes, ending in silence, and count reports."""
    steps = list(script)
    finished = asyncio.Event()

    async def connect(*_: object) -> Attempt:
        if not steps:
            finished.set()
            await asyncio.Event().wait()
        attempt, ending = steps.pop(0)
        endings.append(ending)
        return attempt

    endings: list[Ending | None] = []

    class Scripted:
        last_contact_at = 0.0

        def __init__(self, *_: object, **__: object) -> None:
            pass

        async def hold(self) -> Ended:
            ending = endings[-1]
            assert ending is not None
            return Ended(ending, "scripted")

    monkeypatch.setattr(channel_module, "connect_once", connect)
    monkeypatch.setattr(channel_module, "Conversation", Scripted)
    for name in ("RECONNECT_BACKOFF_S", "SUSPECT_RETRY_S"):
        monkeypatch.setattr(channel_module, name, 0.0)
    for name in ("RECONNECT_BACKOFF_S", "RECONNECT_BACKOFF_MAX_S", "REFUSED_BACKOFF_MAX_S"):
        monkeypatch.setattr(backoff_module, name, 0.0)

    async def scenario() -> None:
        async with replica(2) as follower:
            follower.network.set_peers({1: "127.0.0.1:1"})
            await finished.wait()
            assert follower.handler.refused == [1] * refusals

    run(scenario())


def test_a_deadline_fails_the_request_and_replaces_a_silent_stream() -> None:
    """A peer that answers nothing at all: not dead, but worth a new connection."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, timeout_s=600.0) as follower:
            leader.echo()
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, vote(2, 0))
            await follower.handler.until(lambda: bool(follower.handler.received))
            leader.handler.on_request = None
            follower.network.send(1, fetch(2, 1))
            await leader.handler.until(lambda: len(leader.handler.received) == 2)
            follower.expire_requests(1)
            assert follower.handler.failed == [(1, 1)]
            follower.network.send(1, fetch(2, 2))
            await leader.handler.until(lambda: len(leader.handler.received) == 3)
            assert follower.link.counters.connects == 2
            assert follower.handler.refused == []
            # The late answer to the first one has nowhere to go.
            leader.network.send(2, answer_to(fetch(2, 1)))
            assert leader.link.counters.responses_unroutable == 1

    run(scenario())


def test_a_slow_answer_does_not_cost_the_stream_while_others_come() -> None:
    """The Fetch expires unanswered, a Vote sent after it was answered: the stream stays."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, timeout_s=600.0) as follower:
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            follower.network.send(1, vote(2, 2))
            await leader.handler.until(lambda: len(leader.handler.received) == 2)
            leader.network.send(2, answer_to(vote(2, 2)))
            await follower.handler.until(lambda: bool(follower.handler.received))
            follower.expire_requests(1)
            assert follower.handler.failed == [(1, 1)]
            leader.network.send(2, answer_to(fetch(2, 1)))
            follower.network.send(1, vote(2, 3))
            await leader.handler.until(lambda: len(leader.handler.received) == 3)
            leader.network.send(2, answer_to(vote(2, 3)))
            await follower.handler.until(lambda: len(follower.handler.received) == 2)
            assert follower.link.counters.connects == 1
            assert follower.link.counters.responses_unmatched == 1

    run(scenario())


def test_a_request_waits_for_a_peer_that_comes_up() -> None:
    """Sent while nothing listens it fails at the refused attempt; later ones get through."""

    async def scenario() -> None:
        async with replica(1) as leader:
            address, port = leader.address, leader.server.port
        async with replica(2) as follower:
            follower.network.set_peers({1: address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
            async with replica(1, port=port) as leader:
                leader.echo()
                request_id = 2
                while not follower.handler.received:
                    before = len(follower.handler.failed) + len(follower.handler.received)
                    follower.network.send(1, fetch(2, request_id))
                    request_id += 1
                    await follower.handler.until(
                        lambda seen=before: (
                            len(follower.handler.failed) + len(follower.handler.received) > seen
                        )
                    )
            assert follower.handler.refused == []

    run(scenario())


def test_a_changed_address_moves_the_stream_and_fails_what_waited() -> None:
    """The request open at the old address fails; the next one reaches the new one."""

    async def scenario() -> None:
        async with (
            replica(1) as old,
            replica(1) as new,
            replica(2, timeout_s=600.0) as follower,
        ):
            new.echo()
            follower.network.set_peers({1: old.address})
            follower.network.send(1, fetch(2, 1))
            await old.handler.until(lambda: bool(old.handler.received))
            follower.network.set_peers({1: new.address})
            follower.network.send(1, fetch(2, 2))
            await follower.handler.until(lambda: bool(follower.handler.received))
            await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
            assert [m.request_id for _, m in new.handler.received] == [2]
            assert follower.network.statuses()[0].address == new.address

    run(scenario())


def test_requests_to_an_unknown_peer_fail_after_send_returned() -> None:
    """The core must not be entered again in the middle of its own output."""

    async def scenario() -> None:
        async with replica(2) as follower:
            follower.network.send(9, fetch(2, 1))
            assert follower.handler.failed == []
            await follower.handler.until(lambda: follower.handler.failed == [(9, 1)])

    run(scenario())


@pytest.mark.parametrize("address", ["no-such-host.invalid:9", "nonsense", "127.0.0.1:1", "a..b:7"])
def test_unreachable_peers_fail_requests_and_complain_once(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Four failed attempts in a row give one line of log."""

    async def scenario() -> None:
        async with replica(2) as follower:
            follower.network.set_peers({1: address})
            for request_id in range(4):
                follower.network.send(1, fetch(2, request_id))
                await follower.handler.until(lambda n=request_id: (1, n) in follower.handler.failed)
            assert follower.handler.refused == []

    with caplog.at_level(logging.INFO):
        run(scenario())
    lines = [r.message for r in caplog.records if r.name.startswith("quorum.transport")]
    assert len(lines) == 1
    assert address in lines[0]


def test_a_silent_listener_costs_only_deadlines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel accepts and then nothing: requests expire, and the hello is given up."""
    monkeypatch.setattr("quorum.transport.conversation.HELLO_TIMEOUT_S", 0.2)

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with replica(2, timeout_s=0.1) as follower:
                follower.network.set_peers({1: f"127.0.0.1:{listener.getsockname()[1]}"})
                follower.network.send(1, fetch(2, 1))
                await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
                follower.network.send(1, fetch(2, 2))
                await follower.handler.until(lambda: (1, 2) in follower.handler.failed)
                assert follower.handler.refused == []

    run(scenario())


def test_made_up_leaders_cost_few_connections() -> None:
    """400 hints of peers that do not exist; voters and configured servers keep their channels."""

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            address = f"127.0.0.1:{nobody.getsockname()[1]}"
            async with replica(2) as follower:
                network = follower.network
                network.set_peers({1: address, 3: address})
                network.set_peers({-2: address})
                for stranger in range(1000, 1400):
                    network.set_peers({stranger: address}, is_hint=True)
                network.set_peers({1: address}, is_hint=True)
                peers = [status.peer for status in network.statuses()]
                assert peers[:3] == [-2, 1, 3]
                assert len(peers) == 3 + CHANNELS_OF_HINTS_MAX
                # A hint that proves to be a voter stays, whatever is hinted next.
                network.set_peers({1399: address})
                for stranger in range(2000, 2100):
                    network.set_peers({stranger: address}, is_hint=True)
                assert 1399 in [status.peer for status in network.statuses()]
                assert follower.link.counters.hints_forgotten > 400

    run(scenario())
