"""Two live processes with one replica key: the second is refused, named and counted."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from quorum.transport import peer_sessions as peer_sessions_module
from quorum.transport.framing import PROBE_FRAME, encode_frame
from quorum.transport.hello import Hello, encode_hello
from quorum.transport.inbound import InboundStream
from quorum.transport.peer_sessions import PeerSession, PeerSessions
from quorum.types import ReplicaKey
from tests.support.peer_harness import (
    CLUSTER,
    PATIENCE_S,
    bare_stream,
    end_of,
    fetch,
    key,
    mute_stream,
    refusal,
    replica,
    run,
)

pytestmark = pytest.mark.usefixtures("carrier")

FIRST = Hello(CLUSTER, key(2), b"", process_id=b"first")
SECOND = Hello(CLUSTER, key(2), b"", process_id=b"second")


def test_a_clone_is_refused_and_the_first_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """Over real streams: the clone's request fails, the first process is still answered.

    The first process sends nothing while the clone connects; it only answers the probe.
    """

    async def scenario() -> None:
        async with (
            replica(1) as leader,
            replica(2, hello=FIRST) as first,
            replica(2, hello=SECOND) as clone,
        ):
            leader.echo()
            first.network.set_peers({1: leader.address})
            first.network.send(1, fetch(2, 1))
            await first.handler.until(lambda: len(first.handler.received) == 1)
            clone.network.set_peers({1: leader.address})
            assert "another live process speaks as node 2" in await refusal(clone, by=1)
            assert "another live process speaks as node 2" in clone.network.statuses()[0].problem
            assert leader.link.counters.clones_refused >= 1
            assert leader.link.counters.malformed == first.link.counters.malformed == 0
            first.network.send(1, fetch(2, 3))
            await first.handler.until(lambda: len(first.handler.received) == 2)

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert "copy of its disk" in caplog.text


def test_a_process_that_does_not_answer_loses_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine may be gone. Should it come back, nothing more is taken from its old stream."""
    monkeypatch.setattr(peer_sessions_module, "PEER_SESSION_ANSWER_S", 0.2)

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, hello=SECOND) as second:
            async with mute_stream(leader, FIRST) as mute:
                leader.echo()
                second.network.set_peers({1: leader.address})
                second.network.send(1, fetch(2, 2))
                await second.handler.until(lambda: bool(second.handler.received))
                assert await mute.read() == PROBE_FRAME
                await mute.write(encode_frame(fetch(2, 3)))
                assert "now holds replica key 2" in (await end_of(mute)).details
            assert [message.request_id for _, message in leader.handler.received] == [1, 2]

    run(scenario())


def test_a_rival_that_gives_up_waiting_waits_for_the_rest_when_it_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its requests may expire before the answer is due, and with them the stream.

    One question was put, so the time that the first wait has used up is not granted again.
    """
    monkeypatch.setattr(peer_sessions_module, "PEER_SESSION_ANSWER_S", 0.2)

    async def scenario() -> None:
        places, probes = PeerSessions(), Probes()
        silent = await places.claim(FIRST, probes, places.next_stream())
        assert silent is not None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await places.claim(SECOND, probes, places.next_stream())
        asked = silent.asked
        assert asked is not None
        assert not asked.done()
        assert await places.claim(SECOND, probes, places.next_stream()) is not None
        assert silent.asked is asked
        assert probes.sent == 1

    run(scenario())


def test_a_pause_of_this_process_is_no_silence_of_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine stood still for longer than the time to answer, and the answer is read late."""

    async def scenario() -> None:
        places, probes = PeerSessions(), Probes()
        loop = asyncio.get_running_loop()
        loop_time, pause_s = loop.time, 2 * peer_sessions_module.PEER_SESSION_ANSWER_S
        first = await places.claim(FIRST, probes, places.next_stream())
        assert first is not None
        clone = asyncio.ensure_future(places.claim(SECOND, probes, places.next_stream()))
        await asyncio.sleep(0)
        monkeypatch.setattr(loop, "time", lambda: loop_time() + pause_s)
        for _ in range(5):
            await asyncio.sleep(0)
        first.record_contact()
        assert await clone is None

    run(scenario())


def test_a_clone_is_refused_though_an_older_stream_claimed_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A busy machine may report a write, and then the end of its call, much later than they came.

    Meanwhile the process has moved to a newer stream.
    """
    served = 0
    check, newer_is_served = InboundStream._check_identity, asyncio.Event()

    async def check_late(stream: InboundStream, theirs: Hello) -> None:
        nonlocal served
        served += 1
        while served == 1 and not newer_is_served.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await newer_is_served.wait()
        await check(stream, theirs)

    monkeypatch.setattr(InboundStream, "_check_identity", check_late)

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, hello=SECOND) as clone:
            leader.echo()
            async with bare_stream(leader) as before:
                await before.write(encode_hello(FIRST))
                await before.read()
            async with replica(2, hello=FIRST) as first:
                first.network.set_peers({1: leader.address})
                first.network.send(1, fetch(2, 1))
                await first.handler.until(lambda: len(first.handler.received) == 1)
                newer_is_served.set()
                while leader.network.service.stream_count > 1:
                    await asyncio.sleep(0)
                clone.network.set_peers({1: leader.address})
                clone.network.send(1, fetch(2, 2))
                await clone.handler.until(lambda: clone.handler.failed == [(1, 2)])
                assert leader.link.counters.clones_refused >= 1

    run(scenario())


class Probes:
    """Counts what would be sent; a peer session named in ``answering`` answers at once."""

    def __init__(self) -> None:
        self.sent = 0
        self.answering: PeerSession | None = None

    def __call__(self) -> None:
        self.sent += 1
        if self.answering is not None:
            self.answering.record_contact()


def test_which_sessions_are_accepted() -> None:
    """The same process may reconnect; another one only when the first does not live."""

    async def scenario() -> None:
        places, probes = PeerSessions(), Probes()
        first = await places.claim(FIRST, probes, places.next_stream())
        again = await places.claim(FIRST, probes, places.next_stream())
        assert first is not None
        assert again is not None
        assert probes.sent == 0
        probes.answering = again
        assert await places.claim(SECOND, probes, places.next_stream()) is None
        places.release(first)  # the older of its two streams
        assert await places.claim(SECOND, probes, places.next_stream()) is None
        assert probes.sent == 2
        assert not again.is_superseded

    run(scenario())


def test_a_stream_that_claims_late_does_not_free_the_key_when_it_ends() -> None:
    """A process gave it up for a newer stream, while this node still waited to send its hello."""

    async def scenario() -> None:
        places, probes = PeerSessions(), Probes()
        older, newer = places.next_stream(), places.next_stream()
        session = await places.claim(FIRST, probes, newer)
        late = await places.claim(FIRST, probes, older)
        assert late is not None
        places.release(late)
        probes.answering = session
        assert await places.claim(SECOND, probes, places.next_stream()) is None

    run(scenario())


def test_a_stream_that_ends_while_a_rival_waits_makes_room_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process was restarted, and its old stream is only now seen to end."""
    monkeypatch.setattr(peer_sessions_module, "PEER_SESSION_ANSWER_S", 2 * PATIENCE_S)

    async def scenario() -> None:
        places, probes = PeerSessions(), Probes()
        before = await places.claim(FIRST, probes, places.next_stream())
        assert before is not None
        waiting = asyncio.ensure_future(places.claim(SECOND, probes, places.next_stream()))
        await asyncio.sleep(0)
        places.release(before)
        assert await waiting is not None

    run(scenario())


def test_of_two_clones_that_wait_one_gets_the_place() -> None:
    """Both claim the place of a dead process; the second then finds the first, which runs."""

    async def scenario() -> None:
        places, probes = PeerSessions(), Probes()
        gone = await places.claim(FIRST, probes, places.next_stream())
        assert gone is not None
        third = Hello(CLUSTER, key(2), b"", process_id=b"third")
        both = [
            asyncio.ensure_future(places.claim(each, probes, places.next_stream()))
            for each in (SECOND, third)
        ]
        await asyncio.sleep(0)
        places.release(gone)
        winner = await both[0]
        assert winner is not None
        await asyncio.sleep(0)
        winner.record_contact()
        assert await both[1] is None

    run(scenario())


def test_a_restarted_process_is_no_clone() -> None:
    """Its old stream has ended, so there is no other session."""

    async def scenario() -> None:
        places, probes = PeerSessions(), Probes()
        before = await places.claim(FIRST, probes, places.next_stream())
        assert before is not None
        places.release(before)
        assert await places.claim(SECOND, probes, places.next_stream()) is not None
        assert probes.sent == 0

    run(scenario())


def test_nodes_without_an_id_may_have_several_sessions() -> None:
    """Observers without a number."""
    unknown = ReplicaKey(-1, b"d" * 16)

    async def scenario() -> None:
        places, probes = PeerSessions(), Probes()
        for process_id in (b"a", b"b"):
            hello = Hello(CLUSTER, unknown, b"", process_id=process_id)
            assert await places.claim(hello, probes, places.next_stream()) is not None
        assert probes.sent == 0

    run(scenario())
