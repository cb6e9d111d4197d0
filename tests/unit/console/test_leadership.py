"""The page of leadership terms: who led, from when, and until when that is known."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from quorate.client import Client
from quorate.client.results.admin import DescribeQuorumResponse, QuorumReplica
from quorate.console.alerts import AlertStates
from quorate.console.app import make_app
from quorate.console.binding import Binding
from quorate.console.charts import WIDTH
from quorate.console.follower import ANSWER_SECONDS_MAX, Answer, Follower, Led
from quorate.console.image_feed import ImageFeed
from quorate.console.index import Index
from quorate.console.terms import Term
from quorate.console.views import Sources

LOOPBACK = Binding("127.0.0.1", 0, host_names=("localhost",))


def test_a_leadership_whose_beginning_was_trimmed_is_shown(tmp_path: Path) -> None:
    now = DescribeQuorumResponse(leader_id=2, leader_epoch=7, node_id=2, timestamp_ms=9_000)
    index = Index(tmp_path)
    feed = ImageFeed(index)
    feed.begin_empty()
    feed.take_terms([Term(6, 500, 1_000, 1)])
    follower = SimpleNamespace(feed=feed, quorum=Answer(now, 0.0), features=None, problems={})
    sources = Sources(cast("Follower", follower), index, AlertStates(), clock=lambda: 0.0)

    async def scenario() -> None:
        transport = httpx.ASGITransport(make_app(sources, LOOPBACK))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
            rows = (await web.get("/api/leadership")).json()["leadership"]["rows"]
            assert [(each["epoch"], each["leader"], each["start"]) for each in rows] == [
                (7, 2, -1),
                (6, 1, 500),
            ]
            page = await web.get("/leadership")
            assert page.status_code == 200
            assert "trimmed" in page.text

    asyncio.run(scenario())
    index.close()


def test_a_leadership_without_a_leader_is_not_called_present(tmp_path: Path) -> None:
    index = Index(tmp_path)
    feed = ImageFeed(index)
    feed.begin_empty()
    feed.take_terms([Term(6, 500, 1_000, 2)])

    async def badges(leader: int) -> tuple[bool, bool]:
        now = DescribeQuorumResponse(
            leader_id=leader, leader_epoch=6, node_id=1, timestamp_ms=9_000
        )
        follower = SimpleNamespace(feed=feed, quorum=Answer(now, 0.0), features=None, problems={})
        sources = Sources(cast("Follower", follower), index, AlertStates(), clock=lambda: 0.0)
        transport = httpx.ASGITransport(make_app(sources, LOOPBACK))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
            page = (await web.get("/leadership")).text
            return ">now<" in page, "no leader now" in page

    assert asyncio.run(badges(2)) == (True, False)
    assert asyncio.run(badges(-1)) == (False, True)
    index.close()


def pages_of(tmp_path: Path, answer: Answer | None, now: float = 0.0) -> dict[str, str]:
    """Return pages of a console whose last answer this is; ``api/`` and a name are documents."""
    index = Index(tmp_path)
    feed = ImageFeed(index)
    feed.begin_empty()
    feed.take_terms([Term(6, 500, 4_000, 2)])
    follower = SimpleNamespace(feed=feed, quorum=answer, features=None, problems={})
    sources = Sources(cast("Follower", follower), index, AlertStates(), clock=lambda: now)

    async def scenario() -> dict[str, str]:
        transport = httpx.ASGITransport(make_app(sources, LOOPBACK))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
            return {
                name: (await web.get(f"/{name}")).text
                for name in ("", "quorum", "leadership", "topics", "alerts", "api/leadership")
            }

    try:
        return asyncio.run(scenario())
    finally:
        index.close()


@pytest.mark.parametrize("is_answered", [True, False])
def test_pages_say_since_when_nobody_answers(tmp_path: Path, *, is_answered: bool) -> None:
    """The last answer is shown, and nothing of it as the present."""
    since = "1970-01-01 00:00:11Z"
    voter = QuorumReplica(replica_id=2, directory_id=bytes(16))
    quorum = DescribeQuorumResponse(
        leader_id=2, leader_epoch=6, node_id=2, timestamp_ms=11_000, voters=(voter,)
    )
    now = ANSWER_SECONDS_MAX + (0.0 if is_answered else 0.1)
    pages = pages_of(tmp_path, Answer(quorum, 0.0, Led(6, 11_000)), now)
    position = json.loads(pages.pop("api/leadership"))["position"]
    assert position["unanswered_since_ms"] == (-1 if is_answered else 11_000)
    for name, page in pages.items():
        assert (f"No node answers since {since}" in page) != is_answered, name
    assert (">now<" in pages["leadership"]) == is_answered
    assert (f"nobody answers since {since}" in pages["leadership"]) != is_answered
    assert ("last known leader" in pages[""]) != is_answered
    assert ("last known leader" in pages["quorum"]) != is_answered
    assert ("Nothing that the console knows of is firing" in pages[""]) == is_answered
    assert (">quiet<" in pages["alerts"]) == is_answered


def test_a_console_that_nobody_has_answered_yet_names_no_state(tmp_path: Path) -> None:
    pages = pages_of(tmp_path, None)
    assert "no node has answered yet" in pages["leadership"]
    assert "No node has answered yet" in pages["quorum"]
    assert not any("no leader now" in page or "<b>none</b>" in page for page in pages.values())


def leadership_of(tmp_path: Path, answer: Answer, *newest: Term) -> tuple[list[Any], str]:
    """Return the rows and the page of leaderships that begin at 1 s (node 1) and 4 s (node 2)."""
    index = Index(tmp_path)
    feed = ImageFeed(index)
    feed.begin_empty()
    feed.take_terms([Term(5, 400, 1_000, 1), Term(6, 500, 4_000, 2), *newest])
    follower = SimpleNamespace(feed=feed, quorum=answer, features=None, problems={})
    sources = Sources(cast("Follower", follower), index, AlertStates(), clock=lambda: 0.0)

    async def scenario() -> tuple[list[Any], str]:
        transport = httpx.ASGITransport(make_app(sources, LOOPBACK))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
            rows = (await web.get("/api/leadership")).json()["leadership"]["rows"]
            return rows, (await web.get("/leadership")).text

    try:
        return asyncio.run(scenario())
    finally:
        index.close()


def blocks(page: str) -> list[tuple[str, float, float]]:
    """Return what each block of the timeline is, and where it begins and ends, in shares."""
    found = re.findall(
        r'<title>([^<]*)</title><rect class="[^"]*" x="([^"]*)" y="6" width="([^"]*)"', page
    )
    return [
        (title, round(float(left) / WIDTH, 2), round((float(left) + float(width)) / WIDTH, 2))
        for title, left, width in found
    ]


def quorum_at(leader: int, epoch: int) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        leader_id=leader, leader_epoch=epoch, node_id=1, timestamp_ms=11_000
    )


def test_a_leadership_without_a_successor_ends_where_its_leader_was_last_known(
    tmp_path: Path,
) -> None:
    """The chart's axis goes on until now: the time without a leader is what people look for."""
    rows, page = leadership_of(tmp_path, Answer(quorum_at(-1, 7), 0.0, Led(6, 6_000)))
    assert [(each["epoch"], each["until"], each["known_until"]) for each in rows] == [
        (6, None, 6_000),
        (5, 4_000, 4_000),
    ]
    assert blocks(page) == [
        ("node 1, epoch 5", 0, 0.3),
        ("node 2, epoch 6", 0.3, 0.5),
        ("no leader is known", 0.5, 1),
    ]
    assert "2.0 s" in page


def test_a_leadership_that_was_never_seen_ends_where_it_began(tmp_path: Path) -> None:
    """As for a console that started later. An answer about an older leadership shows nothing."""
    rows, page = leadership_of(tmp_path, Answer(quorum_at(-1, 6), 0.0, Led(5, 3_000)))
    assert rows[0]["known_until"] == 4_000
    assert blocks(page)[-1] == ("no leader is known", 0.3, 1)


def test_the_present_leadership_lasts_until_now(tmp_path: Path) -> None:
    rows, page = leadership_of(tmp_path, Answer(quorum_at(2, 6), 0.0, Led(6, 11_000)))
    assert rows[0]["known_until"] == 11_000
    assert blocks(page) == [("node 1, epoch 5", 0, 0.3), ("node 2, epoch 6", 0.3, 1)]


def test_the_last_leader_is_remembered_by_the_follower(tmp_path: Path) -> None:
    answers = iter([quorum_at(2, 6), quorum_at(-1, 6), quorum_at(-1, 7)])

    class Asked:
        async def describe_quorum(self, *, from_leader: bool) -> DescribeQuorumResponse:
            assert from_leader
            return next(answers)

    async def scenario() -> list[Led | None]:
        follower = Follower(cast("Client", Asked()), index)
        seen = []
        for _ in range(3):
            await follower._ask_quorum()
            assert follower.quorum is not None
            seen.append(follower.quorum.led)
        return seen

    index = Index(tmp_path)
    assert asyncio.run(scenario()) == [Led(6, 11_000)] * 3
    index.close()
