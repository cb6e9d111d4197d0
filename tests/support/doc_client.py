"""The reference of the client library: what can be imported, and every method, from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

import quorate.client as library
from quorate.client import BlockingClient, Client

_FIXED = {
    "BROKER": "Resource type of a broker's configuration.",
    "LINEARIZABLE": "Read level: shows every write acknowledged before.",
    "LOCAL": "Read level: what the node asked has applied.",
    "TOPIC": "Resource type of a topic's configuration.",
}
"""Values, which have no docstring of their own."""


def methods(owner: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """Public methods by name."""
    for name in sorted(dir(owner)):
        found = inspect.getattr_static(owner, name)
        if not name.startswith("_") and inspect.isfunction(found):
            yield name, found


def client_methods() -> str:
    """One row per method of ``Client``."""
    lines = ["| Method | Result | What it does |", "| --- | --- | --- |"]
    for name, method in methods(Client):
        lines.append(f"| `{name}{_arguments(method)}` | {_result(method)} | {_text(method)} |")
    return "\n".join(lines)


def client_names() -> str:
    """One row per name that the package exports, without the two clients."""
    lines = ["| Name | What it is |", "| --- | --- |"]
    for name in library.__all__:
        if name not in ("Client", "BlockingClient"):
            text = _FIXED.get(name) or _text(getattr(library, name))
            lines.append(f"| `{name}` | {text} |")
    return "\n".join(lines)


def left_out_of_the_blocking_client() -> str:
    """The methods of ``Client`` that ``BlockingClient`` does not have."""
    return ", ".join(
        f"`{name}`" for name, _ in methods(Client) if not hasattr(BlockingClient, name)
    )


def _arguments(method: Callable[..., object]) -> str:
    shown = []
    is_keyword = False
    for each in list(inspect.signature(method).parameters.values())[1:]:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            shown.append("*")
        has_default = each.default is not inspect.Parameter.empty
        shown.append(f"{each.name}=" if has_default else each.name)
    return f"({', '.join(shown)})"


def _result(method: Callable[..., object]) -> str:
    text = str(inspect.signature(method).return_annotation)
    text = re.sub(r"\b\w+_pb2\.", "", text).replace("|", "or")
    return "" if text == "None" else f"`{text}`"


def _text(documented: object) -> str:
    first = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return " ".join(first.replace("``", "`").replace("|", "\\|").split())


MAKERS = {
    "client-methods": client_methods,
    "client-names": client_names,
    "client-not-blocking": left_out_of_the_blocking_client,
}
