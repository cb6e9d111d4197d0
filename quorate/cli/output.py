"""How results are shown: one shape of data, four renderings.

A command makes a ``Result`` and never prints by itself. ``table`` is for people and may
change; the others are for programs: every document names its ``kind`` and ``version``, and
within a version fields are only added. A row on a line of its own, as ``jsonl`` writes it, is no
document and has neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from quorate.cli.column_rows import ColumnRows
from quorate.visible_text import visible_json

FORMATS = ("table", "json", "jsonl", "yaml")
SCHEMA_VERSION = 1
LONG_ROWS_MIN = 1_000
"""From so many rows on, a JSON document has one row per line: an indented one takes five times as
long."""

_PLAIN_YAML = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@-]*")
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, slots=True)
class Result:
    """What a command found. Values are text, numbers, booleans, None, lists and mappings.

    With ``rows`` it is a list of equal things, whose ``columns`` a table shows, or its ``wide``
    ones if they are asked for; ``fields`` belong to the whole. Without rows a table shows one field
    per line: those of ``columns``, or all.
    """

    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)
    rows: Sequence[Mapping[str, object]] | None = None
    columns: Sequence[str] = ()
    wide: Sequence[str] = ()

    def document(self) -> dict[str, object]:
        """The whole result as one document."""
        document: dict[str, object] = {"kind": self.kind, "version": SCHEMA_VERSION}
        document.update(self.fields)
        if self.rows is not None:
            document["rows"] = [dict(row) for row in self.rows]
        return document


def render(
    result: Result, output: str, stream: IO[str], *, colour: bool, is_wide: bool = False
) -> None:
    """Write ``result`` to ``stream`` in one of ``FORMATS``."""
    if output == "json" and result.rows is not None and len(result.rows) >= LONG_ROWS_MIN:
        _write_long_json(result, result.rows, stream)
    elif output == "json":
        stream.write(_json(result.document(), indent=2) + "\n")
    elif output == "jsonl":
        rows = result.rows if result.rows is not None else [result.document()]
        write_lines(rows, stream)
    elif output == "yaml":
        stream.write("\n".join(_yaml(result.document())) + "\n")
    else:
        # Loaded for a table only: it takes 3.5 MB, and a server shows none.
        from quorate.cli.tables import write_table

        columns = result.wide if is_wide and result.wide else result.columns
        write_table(result.fields, result.rows, columns, stream, colour=colour)


def _write_long_json(result: Result, rows: Sequence[Mapping[str, object]], stream: IO[str]) -> None:
    head = {"kind": result.kind, "version": SCHEMA_VERSION, **result.fields}
    stream.write(_json_head(head))
    ahead = "\n    "
    for texts in _json_blocks(rows, _encode, between=", ", behind_name=": "):
        stream.write(ahead + ",\n    ".join(texts))
        ahead = ",\n    "
    stream.write("\n  ]\n}\n")


def _json_blocks(
    rows: Iterable[Mapping[str, object]],
    encode: Callable[[object], str],
    *,
    between: str,
    behind_name: str,
) -> Iterator[list[str]]:
    """Yield some rows at a time as text; ``encode`` uses these separators."""
    if isinstance(rows, ColumnRows):
        yield from rows.json_blocks(
            lambda value: visible_json(encode(value)), between=between, behind_name=behind_name
        )
        return
    for row in rows:
        yield [visible_json(encode(row))]


def stream_rows(
    kind: str,
    fields: Mapping[str, object],
    rows: Iterable[Mapping[str, object]],
    output: str,
    stream: IO[str],
) -> None:
    """Write rows as they come: for ``json`` and ``yaml`` the document of a ``Result``, else lines,
    each a row together with the fields of the whole.

    The document is whole also when ``rows`` ends with an exception, which goes on to the caller:
    its last field ``error`` says why, and is null otherwise. A YAML document begins with ``---``,
    so that several make a stream.
    """
    if output not in ("json", "yaml"):
        write_lines(({**fields, **row} for row in rows), stream)
        return
    is_json = output == "json"
    head = {"kind": kind, "version": SCHEMA_VERSION, **fields}
    stream.write(_json_head(head) if is_json else "\n".join(["---", *_yaml(head)]))
    is_empty, error = True, None
    try:
        for row in rows:
            if is_json:
                stream.write(("" if is_empty else ",") + "\n    " + _json(row))
            else:
                stream.write("\nrows:" if is_empty else "")
                stream.write("\n" + "\n".join(_yaml([row], "  ")))
            is_empty = False
    except BaseException as failure:  # one that was interrupted is not all there is either
        error = str(failure) or type(failure).__name__
        raise
    finally:
        stream.write((_json_tail if is_json else _yaml_tail)(error, is_empty=is_empty))


_encode = json.JSONEncoder(ensure_ascii=False).encode
_encode_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _json(value: object, **form: Any) -> str:
    return visible_json(json.dumps(value, ensure_ascii=False, **form))


def _json_head(head: Mapping[str, object]) -> str:
    """The beginning of a document whose rows follow."""
    return _json({**head, "rows": []}, indent=2).removesuffix("]\n}")


def _json_tail(error: str | None, *, is_empty: bool) -> str:
    closing = "]" if is_empty else "\n  ]"
    return f'{closing},\n  "error": {_json(error)}\n}}\n'


def _yaml_tail(error: str | None, *, is_empty: bool) -> str:
    rows = "\nrows: []" if is_empty else ""
    return f"{rows}\nerror: {_yaml_scalar(error)}\n"


def write_lines(rows: Iterable[Mapping[str, object]], stream: IO[str]) -> None:
    """One JSON document per line, written as the rows come."""
    for texts in _json_blocks(rows, _encode_compact, between=",", behind_name=":"):
        stream.write("\n".join(texts) + "\n")


def _yaml(value: object, indent: str = "") -> list[str]:
    if isinstance(value, Mapping):
        return _yaml_mapping(value, indent)
    if isinstance(value, list | tuple):
        lines = []
        for item in value:
            inner = _yaml(item, indent + "  ")
            lines.append(f"{indent}- {inner[0].lstrip()}")
            lines += inner[1:]
        return lines or [f"{indent}[]"]
    return [f"{indent}{_yaml_scalar(value)}"]


def _yaml_mapping(value: Mapping[object, object], indent: str) -> list[str]:
    lines = []
    for key, item in value.items():
        name = _yaml_scalar(str(key))
        if isinstance(item, Mapping | list | tuple) and item:
            lines.append(f"{indent}{name}:")
            lines += _yaml(item, indent + "  ")
        else:
            lines.append(f"{indent}{name}: {_yaml(item)[0]}")
    return lines or [f"{indent}{{}}"]


def _yaml_scalar(value: object) -> str:
    # A JSON scalar is a YAML scalar; only harmless words go without quotes.
    if isinstance(value, str) and _PLAIN_YAML.fullmatch(value) and value.lower() not in _YAML_WORDS:
        return value
    return _json(value)
