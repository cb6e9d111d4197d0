"""The reference of the client library: what can be imported, and every method, from the code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import quorate.client as library
from quorate.client import BlockingClient, Client, results
from quorate.client.message_value import OpenEnum
from tests.support.doc_regions import table

ROOT = Path(__file__).resolve().parents[2]
_FILES = ("admin", "metadata", "commands", "common", "errors")
"""Modules of results whose fields are shown; records have a page of their own."""
_FIXED = {
    "BROKER": "Resource type of a broker's configuration.",
    "LINEARIZABLE": "Read level: shows every write acknowledged before.",
    "LOCAL": "Read level: what the node asked has applied.",
    "WatchEvent": "What a watch yields: a `StateChunk` or a `ChangeBatch`.",
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
    text = text.replace("|", "or")
    return "" if text == "None" else f"`{text}`"


def _text(documented: object) -> str:
    first = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return " ".join(first.replace("``", "`").replace("|", "\\|").split())


def generator() -> ModuleType:
    """Return proto/results.py; its folder is no package."""
    spec = spec_from_file_location("results_generator", ROOT / "proto" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def client_results() -> str:
    """Every class that the methods return, with its fields."""
    parts: list[str] = []
    notes = generator().comments()
    for file in _FILES:
        module = import_module(f"{results.__name__}.{file}")
        classes = [getattr(results, name) for name in results.__all__]
        parts.append(f"### {file}.proto")
        parts += [_class(each, notes) for each in classes if each.__module__ == module.__name__]
    return "\n\n".join(parts)


def client_records() -> str:
    """The classes of typed records, by name."""
    place = f"{results.__name__}.records"
    return ", ".join(
        f"`{name}`" for name in results.__all__ if getattr(results, name).__module__ == place
    )


def _class(cls: type, notes: dict[str, str]) -> str:
    text = f"**`{cls.__name__}`**: {_text(cls)}"
    if issubclass(cls, OpenEnum):
        return text + "\n\n" + ", ".join(f"`{each.name}`" for each in cls)
    rows = [
        [f"`{each.name}`", f"`{_type(each.type)}`", notes[f"{cls.__name__}.{each.name}"]]
        for each in fields(cls)
    ]
    return text + "\n\n" + table(["Field", "Type", "What it is"], rows)


def _type(annotation: object) -> str:
    return str(annotation).replace(" | ", " or ")


MAKERS = {
    "client-results": client_results,
    "client-records": client_records,
    "client-methods": client_methods,
    "client-names": client_names,
    "client-not-blocking": left_out_of_the_blocking_client,
}
