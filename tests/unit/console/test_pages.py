"""Every view as a page and as JSON, of a served cluster; hostile names and requests."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import httpx
import pytest

from quorate.client import TOPIC, Client
from quorate.client.results.admin import DescribeQuorumResponse
from quorate.console.alerts import AlertStates, alerts_document, own_findings
from quorate.console.app import make_app
from quorate.console.binding import Binding
from quorate.console.entity_records import SHOWN
from quorate.console.follower import Follower
from quorate.console.index import KINDS_OF_HISTORY, QUORUM_KIND, Index
from quorate.console.views import VIEWS, Sources
from quorate.timetravel.entities import _NAMERS
from tests.support.served_node import cluster, serving

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
LOOPBACK = Binding("127.0.0.1", 0, host_names=("localhost", "127.0.0.1", "::1"))


class Tags(HTMLParser):
    """The elements of a page, and the attributes that could run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.handlers: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


@asynccontextmanager
async def console(
    tmp_path: Path, binding: Binding = LOOPBACK
) -> AsyncIterator[tuple[httpx.AsyncClient, Client, Sources]]:
    _log, nodes = cluster(1)
    index = Index(tmp_path)
    async with serving(*nodes), Client([nodes[0].address], client_id="tester") as client:
        for value in ("1", "2", "3"):
            await client.set_config(TOPIC, "t", "retention.ms", value)
        sources = Sources(Follower(client, index), index, AlertStates())
        following = asyncio.create_task(sources.follower.run())
        async with asyncio.timeout(20):
            await sources.follower.loaded.wait()
            await shows_offset(sources, _log.end)
        transport = httpx.ASGITransport(make_app(sources, binding))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
            yield web, client, sources
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    index.close()


async def shows_offset(sources: Sources, offset: int) -> None:
    while sources.image.provenance.end_offset < offset:
        await asyncio.sleep(0.01)


def parameters(view: str) -> str:
    return "?name=t" if view == "topic" else ""


def test_every_view_is_a_page_and_a_document(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            for view in VIEWS:
                path = "/" if view == "overview" else f"/{view}"
                page = await web.get(path + parameters(view))
                document = await web.get(f"/api/{view}{parameters(view)}")
                expected = 404 if view == "topic" else 200
                assert (page.status_code, document.status_code) == (expected, expected), view
                assert page.headers["content-security-policy"].startswith("default-src 'none'")
                assert "script" not in Tags(page.text).names
                assert all(not link.startswith("http") for link in Tags(page.text).links)
                assert set(document.json()) == {"position", view}

    asyncio.run(scenario())


def test_a_table_scrolls_in_its_own_box_on_a_narrow_screen() -> None:
    """Else the whole page is wider than a phone."""
    for template in resources.files("quorate.console").joinpath("templates").iterdir():
        text = template.read_text("utf-8")
        assert text.count("<table>") == text.count('<div class="wide"><table>'), template.name


def test_a_principal_without_a_name_is_shown_in_words_and_not_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            page = await web.get("/history", params={"principal": "unauthenticated:"})
            assert "History of unauthenticated (no client id)" in page.text
            assert 'value="unauthenticated:"' in page.text

    asyncio.run(scenario())
    shown = re.compile(r"(?<!value=\"){{ [^}]*\.principal\b[^}]*}}")
    found = [
        text
        for template in resources.files("quorate.console").joinpath("templates").iterdir()
        for text in shown.findall(template.read_text("utf-8"))
        if "m.pager(" not in text
    ]
    assert len(found) == 3
    assert all("|principal }}" in text for text in found), found


def test_history_says_who_when_and_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            answer = await web.get(
                "/api/history", params={"kind": "config", "name": "topic:t/retention.ms"}
            )
            rows = answer.json()["history"]["rows"]
            assert [each["change"] for each in rows] == ["changed", "changed", "added"]
            assert rows[0]["fields"] == {"value": {"before": "2", "after": "3"}}
            assert {each["principal"] for each in rows} == {"unauthenticated:tester"}

    asyncio.run(scenario())


@pytest.mark.parametrize("view", ["history", "search"])
@pytest.mark.parametrize("kind", ["topics", "producer"])
def test_an_unknown_kind_is_not_found_and_the_error_names_the_kinds(
    tmp_path: Path, view: str, kind: str
) -> None:
    """An empty page would say that nothing of it has ever changed."""

    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            page = await web.get(f"/{view}", params={"kind": kind})
            document = await web.get(f"/api/{view}", params={"kind": kind})
            assert (page.status_code, document.status_code) == (404, 404)
            error = document.json()[view]["error"]
            assert error.startswith(f"no kind '{kind}' here; there are topic, ")
            assert f"no kind &#39;{kind}&#39; here" in page.text
            known = error.partition("there are ")[2].split(", ")
            assert {"acl", "config", "topic"} <= set(known)
            for each in known:
                assert (await web.get(f"/{view}", params={"kind": each})).status_code == 200

    asyncio.run(scenario())


@pytest.mark.parametrize("view", ["leadership", "features", "search", "brokers"])
def test_a_page_links_to_histories_that_there_are(tmp_path: Path, view: str) -> None:
    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            for link in Tags((await web.get(f"/{view}")).text).links:
                assert not link.startswith("/history") or (await web.get(link)).is_success, link

    asyncio.run(scenario())


def test_every_kind_of_change_has_a_history() -> None:
    """What a batch may change, by its record; see ``changed_keys``. Voters have no record there."""
    kinds = {kind for each, (kind, _) in _NAMERS.items() if each.API_KEY in SHOWN}
    assert kinds | {QUORUM_KIND} == set(KINDS_OF_HISTORY)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """A client chooses names and reasons; none of them becomes an element of a page."""

    async def scenario() -> None:
        async with console(tmp_path) as (web, client, sources):
            applied = await client.set_config(TOPIC, HOSTILE, "k<b>", HOSTILE)
            async with asyncio.timeout(20):
                await shows_offset(sources, applied.offset)
            for path, query in (
                ("/", {}),
                ("/history", {}),
                ("/history", {"kind": HOSTILE, "name": HOSTILE, "principal": HOSTILE}),
                ("/search", {"q": "script"}),
                ("/search", {"q": HOSTILE}),
                ("/diff", {}),
                ("/diff", {"from": HOSTILE}),
                ("/topic", {"name": HOSTILE}),
                ("/topics", {"q": HOSTILE, "page": HOSTILE}),
                (f"/{HOSTILE}", {}),
            ):
                page = await web.get(path, params=query)
                tags = Tags(page.text)
                is_html = page.headers["content-type"].startswith("text/html")
                assert not is_html or not tags.names & {"script", "img"}, path
                assert not tags.handlers or not is_html, path
                assert page.headers["x-content-type-options"] == "nosniff"
            page = await web.get("/search", params={"q": "onerror"})
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
            document = await web.get("/api/search", params={"q": "onerror"})
            assert document.headers["content-type"] == "application/json"
            assert json.loads(document.text)["search"]["rows"][0]["fields"]["value"] == HOSTILE

    asyncio.run(scenario())


def test_nothing_can_be_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
                answer = await web.request(method, "/topics")
                assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
            assert (await web.head("/topics")).status_code == 200

    asyncio.run(scenario())


def test_a_foreign_page_cannot_read_by_another_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            for host in ("rebound.example", "127.0.0.1.example:9192", ""):
                answer = await web.get("/", headers={"host": host})
                assert answer.status_code == 421, host
            for host in ("LOCALHOST:9192", "[::1]:9192", "127.0.0.1"):
                assert (await web.get("/", headers={"host": host})).status_code == 200, host

    asyncio.run(scenario())


def test_without_the_token_nothing_is_shown(tmp_path: Path) -> None:
    token = "0123456789abcdef"
    basic = base64.b64encode(f"me:{token}".encode()).decode()

    async def scenario() -> None:
        binding = Binding("0.0.0.0", 0, token=token.encode())
        async with console(tmp_path, binding) as (web, _client, _sources):
            for shown in ("", "Bearer", "Bearer 0123456789abcdee", "Basic !", f"Digest {token}"):
                answer = await web.get("/api/quorum", headers={"authorization": shown})
                assert answer.status_code == 401, shown
                assert "voters" not in answer.text
            for shown in (f"Bearer {token}", f"basic {basic}"):
                answer = await web.get("/api/quorum", headers={"authorization": shown})
                assert answer.status_code == 200, shown
            assert (await web.get("/healthz")).text == "ok\n"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/api/topics?page=-1", "no number"),
        ("/api/topics?page=99999999999", "no number"),
        ("/api/diff?from=yesterday", "is no time"),
        ("/api/diff?from=999999", "is not known here"),
        ("/api/diff?from=4&to=1", "is behind"),
        ("/api/topics?q=" + "x" * 301, "longer than"),
        ("/api/topic?name=nothing", "no topic"),
    ],
)
def test_a_wrong_request_gets_a_sentence(tmp_path: Path, path: str, part: str) -> None:
    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            answer = await web.get(path)
            assert answer.status_code in (400, 404)
            (document,) = [each for key, each in answer.json().items() if key != "position"]
            assert part in document["error"]

    asyncio.run(scenario())


def test_a_diff_that_is_refused_keeps_what_was_typed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with console(tmp_path) as (web, _client, _sources):
            page = await web.get("/diff", params={"from": "999999"})
            assert page.status_code == 400
            assert 'name="from" value="999999"' in page.text
            assert "Compare" in page.text

    asyncio.run(scenario())


def test_what_nobody_knows_is_not_called_quiet() -> None:
    quorum = {"is_known": False}
    rows = alerts_document(AlertStates(), own_findings(quorum, 0))["rows"]
    assert {each["state"] for each in rows} == {"unknown"}


def test_a_prometheus_knows_every_rule() -> None:
    states = AlertStates("http://p")
    states.firing = {"QuorateSlowSync": ["slow"]}
    rows = alerts_document(states, {"QuorateNoLeader": "none"})["rows"]
    assert [each["alert"] for each in rows if each["state"] == "firing"] == ["QuorateSlowSync"]
    assert {each["state"] for each in rows[1:]} == {"quiet"}


def test_no_leader_is_an_alert(tmp_path: Path) -> None:
    from quorate.console.quorum_document import quorum_document

    document = quorum_document(DescribeQuorumResponse(leader_id=-1, node_id=1), 0.0)
    assert own_findings(document, 3) == {
        "QuorateNoLeader": "no node leads",
        "QuoratePartitionsOffline": "3 partitions have no leader",
        "QuorateNotApplying": "",
    }
