"""The endpoint answers probes and scrapes, and survives what is not HTTP."""

from __future__ import annotations

import asyncio
import json
import ssl

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from metrics import http as http_module
from metrics.families import Families
from metrics.health import Check, run_checks
from metrics.http import CONNECTIONS_MAX, REQUEST_BYTES_MAX, Endpoint, HttpServer


def endpoint(*, live: str | None = None, ready: str | None = None) -> Endpoint:
    registry = CollectorRegistry()
    Families(registry).count("quorate_raft_leader_lost_total")
    return Endpoint(
        registry,
        live=[Check("loop", lambda: live)],
        ready=[Check("leader_known", lambda: ready), Check("disk", lambda: None)],
    )


def test_metrics_are_served_in_the_text_format() -> None:
    answer = endpoint().answer("GET", "/metrics")
    assert answer.status == 200
    assert answer.content_type.startswith("text/plain; version=")
    assert b"quorate_raft_leader_lost_total 1.0" in answer.body


def test_a_scraper_that_accepts_openmetrics_gets_it() -> None:
    answer = endpoint().answer(
        "GET", "/metrics", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    )
    assert answer.content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert answer.body.endswith(b"# EOF\n")
    families = text_string_to_metric_families(answer.body.decode())
    assert {"quorate_raft_leader_lost": "counter"}.items() <= {
        each.name: each.type for each in families
    }.items()


def test_readiness_names_the_failed_check_and_its_reason() -> None:
    answer = endpoint(ready="no leader for 12 s").answer("GET", "/readyz")
    assert answer.status == 503
    assert answer.body.decode().splitlines() == [
        "[-] leader_known: no leader for 12 s",
        "[+] disk",
        "not ok",
    ]


def test_readiness_as_json() -> None:
    for answer in (
        endpoint(ready="x").answer("GET", "/readyz?format=json"),
        endpoint(ready="x").answer("GET", "/readyz", " application/json"),
    ):
        body = json.loads(answer.body)
        assert answer.status == 503
        assert body["ok"] is False
        assert body["checks"][0] == {"name": "leader_known", "ok": False, "reason": "x"}


def test_liveness_does_not_depend_on_readiness() -> None:
    assert endpoint(ready="no leader").answer("GET", "/livez").status == 200
    assert endpoint(live="loop stalled").answer("GET", "/livez").status == 503


def test_a_check_that_raises_counts_as_failed() -> None:
    def broken() -> str | None:
        raise ValueError("boom")

    (result,) = run_checks([Check("x", broken)])
    assert not result.ok
    assert "ValueError: boom" in result.reason


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/metrics", 405),
        ("GET", "/metrics?x", 200),
        ("HEAD", "/livez", 200),
    ],
)
def test_status_of_other_requests(method: str, target: str, status: int) -> None:
    assert endpoint().answer(method, target).status == status


def ask(data: bytes, *, finish: bool = True) -> bytes:
    """What a fresh server sends back to these bytes before it closes."""

    async def run() -> bytes:
        server = HttpServer(endpoint(), host="127.0.0.1", port=0)
        await server.start()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(data)
            if finish:
                writer.write_eof()
            answer = await reader.read()
            writer.close()
            return answer
        finally:
            await server.close()

    return asyncio.run(run())


def test_a_scrape_over_a_socket() -> None:
    answer = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"Content-Length: {len(body)}".encode() in head


def test_head_has_no_body() -> None:
    answer = ask(b"HEAD /livez HTTP/1.1\r\n\r\n")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "garbage",
    [b"\x00\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET / SPDY/9\r\n\r\n", b"a b c d\r\n\r\n"],
)
def test_what_is_not_http_is_refused(garbage: bytes) -> None:
    assert ask(garbage).startswith(b"HTTP/1.1 400 ")


def test_an_endless_head_is_refused() -> None:
    answer = ask(b"GET / HTTP/1.1\r\n" + b"x" * (2 * REQUEST_BYTES_MAX), finish=False)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_tls_handshake_is_answered_at_once_in_plain_text() -> None:
    async def run() -> str | None:
        server = HttpServer(endpoint(), host="127.0.0.1", port=0)
        await server.start()
        try:
            context = ssl.create_default_context()
            async with asyncio.timeout(http_module.REQUEST_SECONDS_MAX / 2):
                await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        except ssl.SSLError as error:
            return error.reason
        finally:
            await server.close()
        return None

    assert asyncio.run(run()) == "WRONG_VERSION_NUMBER"


def test_a_half_request_gets_no_answer() -> None:
    assert ask(b"GET /metr") == b""


def test_a_slow_client_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "REQUEST_SECONDS_MAX", 0.02)
    assert ask(b"GET /metr", finish=False) == b""


def test_a_probe_is_answered_despite_many_silent_connections() -> None:
    """At the maximum the connection gives way that has been silent for longest."""

    async def run() -> bytes:
        server = HttpServer(endpoint(), host="127.0.0.1", port=0)
        await server.start()
        held = []
        try:
            for _ in range(CONNECTIONS_MAX):
                held.append(await asyncio.open_connection("127.0.0.1", server.port))
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            held.append((reader, writer))
            writer.write(b"GET /livez HTTP/1.1\r\n\r\n")
            try:
                return await reader.read()
            except ConnectionResetError:
                return b""
        finally:
            for _, writer in held:
                writer.close()
            await server.close()

    assert asyncio.run(run()).startswith(b"HTTP/1.1 200 OK")


def test_metrics_need_the_token_and_probes_do_not() -> None:
    guarded = Endpoint(CollectorRegistry(), live=[], ready=[], token="word")
    assert guarded.answer("GET", "/metrics", "", "Bearer word").status == 200
    for given in ("", "word", "Bearer ", "Bearer wor", "Bearer word2", "Basic word", "Bearer é"):
        assert guarded.answer("GET", "/metrics?x", "", given).status == 401
    assert guarded.answer("GET", "/livez").status == 200
