"""HTTP endpoint for probes and scrapers: /metrics, /livez, /readyz.

It runs on the node's event loop on purpose: a loop that hangs fails its liveness probe. It
supports just enough HTTP/1.1 for GET and HEAD, closes after each answer, and bounds all input
(``REQUEST_BYTES_MAX``, ``CONNECTIONS_MAX``, ``REQUEST_SECONDS_MAX``).

A new connection is always accepted. At the maximum it replaces the connection that has waited
longest for its request, or else the oldest. A probe sends its request at once and is answered
in the same loop turns, so slow or silent connections replace only one another.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from metrics.health import Check, run_checks
from metrics.text_format import choose_encoder

REQUEST_BYTES_MAX = 16 << 10
CONNECTIONS_MAX = 64
REQUEST_SECONDS_MAX = 5.0
_TLS_HANDSHAKE = b"\x16"
"""What begins TLS, and no request."""

_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: status, content type and body."""

    status: int
    content_type: str
    body: bytes


def _text(status: int, text: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", f"{text}\n".encode())


class Endpoint:
    """Answers requests by path; without sockets, so that tests need none."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        live: Sequence[Check],
        ready: Sequence[Check],
        token: str = "",
    ) -> None:
        """``token``: what /metrics asks for as a bearer token (RFC 6750); empty: nothing."""
        self._registry = registry
        self._expected = f"Bearer {token}".encode() if token else b""
        self._checks = {"/livez": tuple(live), "/readyz": tuple(ready)}

    def answer(self, method: str, target: str, accept: str = "", authorization: str = "") -> Answer:
        """Return the answer to one request. Never raises.

        With a token, /metrics answers 401 to a request without it. Probes need none.

        Probes answer 200 or 503 with one line per check, or JSON when the request accepts
        ``application/json`` or the query says ``format=json``. Metrics are in the text format, or
        in OpenMetrics for a request that accepts it.
        """
        if method not in ("GET", "HEAD"):
            return _text(405, "only GET and HEAD are answered here")
        path, _, query = target.partition("?")
        if path == "/metrics":
            given = authorization.encode("latin-1", "replace")
            if self._expected and not hmac.compare_digest(given, self._expected):
                return _text(401, "/metrics needs the bearer token of metrics.token_file")
            encode, content_type = choose_encoder(accept)
            return Answer(200, content_type, encode(self._registry))
        if path in self._checks:
            wants_json = "application/json" in accept or "format=json" in query.split("&")
            return self._probe(self._checks[path], as_json=wants_json)
        return _text(404, "known paths: /metrics /livez /readyz")

    @staticmethod
    def _probe(checks: Sequence[Check], *, as_json: bool) -> Answer:
        results = run_checks(checks)
        ok = all(result.ok for result in results)
        status = 200 if ok else 503
        if as_json:
            body = {
                "ok": ok,
                "checks": [
                    {"name": result.name, "ok": result.ok, "reason": result.reason}
                    for result in results
                ],
            }
            return Answer(status, "application/json", json.dumps(body).encode() + b"\n")
        lines = [
            f"[{'+' if result.ok else '-'}] {result.name}"
            + (f": {result.reason}" if result.reason else "")
            for result in results
        ]
        return _text(status, "\n".join([*lines, "ok" if ok else "not ok"]))


class HttpServer:
    """Serves an ``Endpoint`` on a TCP port. Owned by one event loop.

    Call ``start`` once and ``close`` once. ``port`` is the bound port, also for port 0.
    """

    def __init__(
        self, endpoint: Endpoint, *, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> None:
        self._endpoint = endpoint
        self._tls = tls
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, bool] = {}
        """Connections, the oldest first, and whether the request has arrived."""
        self.dropped = 0
        """Connections that a newer one replaced; any thread may read."""

    @property
    def port(self) -> int:
        """The bound port; the configured one before ``start``."""
        if self._server is not None and self._server.sockets:
            return int(self._server.sockets[0].getsockname()[1])
        return self._port

    async def start(self) -> None:
        """Bind and listen.

        Raises:
            OSError: The address is in use or not local.
        """
        self._server = await asyncio.start_server(
            self._serve,
            self._host,
            self._port,
            limit=REQUEST_BYTES_MAX,
            ssl=self._tls,
            ssl_handshake_timeout=REQUEST_SECONDS_MAX if self._tls else None,
        )

    async def close(self) -> None:
        """Stop listening and drop open connections."""
        if self._server is not None:
            self._server.close()
            for writer in tuple(self._open):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            self._drop_one()
        self._open[writer] = False
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                await self._one_request(reader, writer)
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            self._open.pop(writer, None)
            with contextlib.suppress(OSError):
                writer.close()

    def _drop_one(self) -> None:
        silent = (writer for writer, has_asked in self._open.items() if not has_asked)
        writer = next(silent, None) or next(iter(self._open))
        del self._open[writer]
        self.dropped += 1
        writer.transport.abort()

    async def _one_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            first = await reader.readexactly(1)
            if first == _TLS_HANDSHAKE:
                # It would wait for an answer as long as we for the end of its request.
                await _send(writer, _text(400, "this port uses no TLS"), with_body=True)
                return
            head = first + await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError:
            await _send(writer, _text(400, "request head too large"), with_body=True)
            return
        if writer in self._open:
            self._open[writer] = True
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            await _send(writer, _text(400, "not an HTTP/1.x request"), with_body=True)
            return
        try:
            answer = self._endpoint.answer(
                words[0], words[1], _header(lines, "accept"), _header(lines, "authorization")
            )
        except Exception:  # noqa: BLE001 - a scrape may fail; the node goes on
            _log.exception("event=scrape_failed target=%s", words[1][:100])
            answer = _text(500, "the page could not be made; see the node's log")
        await _send(writer, answer, with_body=words[0] != "HEAD")


def _header(lines: Sequence[str], name: str) -> str:
    """Return the first header of this name (in lower case) without spaces; empty if none."""
    for line in lines[1:]:
        found, _, value = line.partition(":")
        if found.lower() == name:
            return value.strip()
    return ""


async def _send(writer: asyncio.StreamWriter, answer: Answer, *, with_body: bool) -> None:
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        + ("WWW-Authenticate: Bearer\r\n" if answer.status == 401 else "")
        + "Connection: close\r\n\r\n"
    )
    writer.write(head.encode("latin-1") + (answer.body if with_body else b""))
    await writer.drain()
