"""The web application: a page and a JSON document per view; nothing changes anything."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import resources
from typing import Any, Final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quorate.console.binding import Binding
from quorate.console.pages import TITLES, Pages
from quorate.console.paging import NotFoundError
from quorate.console.views import VIEWS, Document, Sources
from quorum.errors import QuorumUsageError

REFRESH_SECONDS: Final = 5
_REFRESHED: Final = frozenset(("overview", "quorum", "leadership", "alerts", "features"))
"""Views that a browser loads again by itself; nobody reads or pages in them for long."""
_HEADERS: Final = {
    # No script runs, wherever it would come from: names of topics are foreign text.
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

logger = logging.getLogger(__name__)


def make_app(sources: Sources, binding: Binding) -> ASGIApp:
    """Return the application that shows ``sources``, for requests that ``binding`` admits."""
    pages = Pages()
    static = resources.files("quorate.console").joinpath("static")
    style = static.joinpath("style.css").read_text("utf-8")
    routes = [
        Route("/style.css", lambda _request: Response(style, media_type="text/css")),
        Route("/healthz", lambda _request: PlainTextResponse("ok\n")),
    ]
    for view in VIEWS:
        path = "/" if view == "overview" else f"/{view}"
        routes.append(Route(path, _page(sources, pages, view)))
        routes.append(Route(f"/api/{view}", _document(sources, view)))
    app = Starlette(routes=routes, exception_handlers={404: _no_such_page})
    return _Gate(app, binding)


def _ask(sources: Sources, view: str, request: Request) -> tuple[int, Document]:
    """The document of a view, or of what is wrong with the request."""
    try:
        return 200, VIEWS[view](sources, request.query_params)
    except NotFoundError as error:
        return 404, {"error": str(error)}
    except QuorumUsageError as error:
        return 400, {"error": str(error)}


# Starlette calls functions that are no coroutines on threads: the loop only follows the cluster.


def _document(sources: Sources, view: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        status, document = _ask(sources, view, request)
        return JSONResponse({"position": sources.position(), view: document}, status)

    return answer


def _page(sources: Sources, pages: Pages, view: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        status, document = _ask(sources, view, request)
        query = dict(request.query_params)
        shared: dict[str, Any] = {
            "position": sources.position(),
            "asked": view,
            "title": TITLES.get(view, view.capitalize()),
            "query": query,
            "json_path": f"/api/{view}" + (f"?{urlencode(query)}" if query else ""),
            "refresh": REFRESH_SECONDS if view in _REFRESHED and status == 200 else 0,
        }
        if status != 200:
            text = pages.render("error", error=document["error"], **shared)
        else:
            text = pages.render(view, doc=document, **shared)
        return HTMLResponse(text, status)

    return answer


def _no_such_page(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse("no such page\n", 404)


class _Gate:
    """Looks at every request before it is answered, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, binding: Binding) -> None:
        self._app = app
        self._binding = binding

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await (refusal or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse(
                "the console is read-only\n", 405, headers={"allow": "GET, HEAD"}
            )
        names = self._binding.host_names
        if names and _name_of(headers.get("host", "")) not in names:
            return PlainTextResponse(
                "this console is not served under that name; see --host-name\n", 421
            )
        if scope["path"] != "/healthz" and not self._binding.admits(
            headers.get("authorization", "")
        ):
            return PlainTextResponse(
                "a token is needed: as the password, or as a bearer token\n",
                401,
                headers={"www-authenticate": 'Basic realm="quorate console", charset="UTF-8"'},
            )
        return None


def _name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
