# ruff: noqa: INP001 - `import proto` belongs to proto-plus, so this folder is no package
"""Write `quorum/v1/records.proto`: one message per record type, from the record declarations.

    python proto/records.py

A field keeps the number that it has in the present file; a new one gets the next number of its
message. So declarations may gain fields anywhere, and foreign programs keep reading.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from statemachine.records import OWN_API_KEY_MIN, RECORD_TYPES, RecordType
from statemachine.records_schema import ArrayOf, FieldSpec, Kind, Scalar, StructOf

TARGET = Path(__file__).resolve().parent / "quorum" / "v1" / "records.proto"
UNDECODED = 1
"""Field of ``TypedRecord`` for what the node cannot decode; record types follow."""

HEAD = """\
// Metadata records as typed messages, as the log and checkpoints have them.
//
// Generated from statemachine/records*.py by proto/records.py; do not edit. The meaning of the
// fields is in docs/reference/record-types.md. A field that its record's version does not have, has
// its default.
syntax = "proto3";

package quorum.v1;
"""
TYPES = {
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "uint16": "uint32",
    "uuid": "bytes",
    "string": "string",
    "bytes": "bytes",
    "bool": "bool",
    "float64": "double",
}

Numbers = dict[tuple[str, str], int]
"""Field numbers by message (with its parents, separated by dots) and field."""


def snake(name: str) -> str:
    """Return a class name as the name of a field."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def type_number(record_type: RecordType) -> int:
    """Return the field number of a type: behind its API key for Kafka's, the key for ours."""
    return record_type.key if record_type.key >= OWN_API_KEY_MIN else record_type.key + 2


def numbers_in(text: str) -> Numbers:
    """Return the numbers of a file that this script has written."""
    found: Numbers = {}
    path: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if match := re.match(r"(?:message|oneof) (\w+) \{", stripped):
            path.append(match[1])
        elif stripped == "}":
            path.pop()
        elif match := re.match(r"[\w ]+ (\w+) = (\d+);", stripped):
            found[".".join(path), match[1]] = int(match[2])
    return found


def rendered(known: Numbers) -> str:
    """Return the file. ``known`` are the numbers that fields keep."""
    lines = [
        HEAD,
        "// One record. If the serving node does not know its type or version: `undecoded` only.",
        "message TypedRecord {",
        "  // The record as the log has it, in one of its two codecs.",
        f"  bytes undecoded = {UNDECODED};",
        "  // A type's number is its API key plus 2, and the key itself from 20000 on.",
        "  oneof record {",
    ]
    for record_type in RECORD_TYPES.values():
        name = record_type.name
        lines.append(f"    {name} {snake(name)} = {type_number(record_type)};")
    lines += ["  }", "}", ""]
    for name in ("int32", "bytes"):
        lines += [
            "// A list that may be absent, which differs from an empty one.",
            f"message {name.capitalize()}Values {{",
            f"  repeated {name} values = 1;",
            "}",
            "",
        ]
    for record_type in RECORD_TYPES.values():
        doc = (record_type.record_class.__doc__ or "").splitlines()[0]
        lines += _comment(f"API key {record_type.key}. {doc}", "")
        lines += [*_message(record_type.name, record_type.fields, known, ""), ""]
    return "\n".join(lines).rstrip() + "\n"


def _message(
    name: str, fields: tuple[FieldSpec, ...], known: Numbers, parent: str
) -> Iterator[str]:
    path = f"{parent}.{name}" if parent else name
    indent = "  " * path.count(".")
    yield f"{indent}message {name} {{"
    inside: dict[str, StructOf] = {}
    body = []
    taken = {number for (message, _), number in known.items() if message == path}
    for spec in fields:
        number = known.get((path, spec.name))
        if number is None:
            number = max(taken, default=0) + 1
            taken.add(number)
        struct = _struct(spec.kind)
        if struct is not None:
            inside[struct.struct.__name__] = struct
        if spec.since:
            body.append(f"{indent}  // From version {spec.since} on.")
        body.append(f"{indent}  {_type(spec)} {spec.name} = {number};")
    for struct_name, struct in inside.items():
        yield from _comment((struct.struct.__doc__ or "").splitlines()[0], f"{indent}  ")
        yield from _message(struct_name, struct.fields, known, path)
    yield from body
    yield f"{indent}}}"


def _struct(kind: Kind) -> StructOf | None:
    if isinstance(kind, ArrayOf):
        return _struct(kind.element)
    return kind if isinstance(kind, StructOf) else None


def _type(spec: FieldSpec) -> str:
    kind = spec.kind
    if isinstance(kind, ArrayOf):
        element = _name(kind.element)
        if not spec.nullable:
            return f"repeated {element}"
        if element not in ("int32", "bytes"):
            raise SystemExit(f"no message for an absent list of {element}: {spec.name}")
        return f"optional {element.capitalize()}Values"
    return f"optional {_name(kind)}" if spec.nullable else _name(kind)


def _name(kind: Kind) -> str:
    if isinstance(kind, StructOf):
        return kind.struct.__name__
    if isinstance(kind, Scalar):
        return TYPES[kind.name]
    raise SystemExit("a list of lists has no message")


def _comment(text: str, indent: str) -> list[str]:
    lines = [""]
    for word in text.replace("``", "`").split():
        if len(lines[-1]) + len(word) > 96:
            lines.append("")
        lines[-1] += f" {word}"
    return [f"{indent}//{line}" for line in lines]


def current() -> str:
    """Return the file as it is; empty if there is none."""
    return TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""


if __name__ == "__main__":
    TARGET.write_text(rendered(numbers_in(current())), encoding="utf-8")
