"""Tables of the protocol and of all messages in docs/reference/, and the diagram of the roles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from quorate.client.cluster import CLUSTER_ID_KEY
from quorate.services.errors import CODE_OF_ERROR
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.protocol.role_transitions import TRANSITIONS, Step
from quorum.errors import ErrorCode
from quorum.transport import framing, limits, packing
from quorum.transport.answers import DETAILS_KEY
from quorum.transport.link import EXCHANGE_METHOD, SERVICE_NAME
from tests.support.doc_regions import code, table

ROOT = Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto" / "quorum" / "v1"
_FIELD = re.compile(r"\s*(optional |repeated )?(\w+) (\w+) = (-?\d+);")
_VALUE = re.compile(r"\s*(\w+) = (-?\d+);")
_RPC = re.compile(r"\s*rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")
_OF_CLIENTS = ErrorCode.PRODUCER_FENCED
_OPEN = re.compile(r"(message|enum|service) (\w+) \{(\})?$")


@dataclass
class Block:
    """A message, enum or service of a .proto file."""

    kind: str
    name: str
    comment: str
    members: list[tuple[str, ...]] = field(default_factory=list)
    """Fields: number, name, type and comment. Methods: name, request, response and comment."""


def blocks(path: Path) -> Iterator[Block]:
    """Return the declarations of a .proto file, each with the comment in front of it."""
    current: Block | None = None
    comment: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("//"):
            comment.append(text.lstrip("/ "))
            continue
        note, comment = " ".join(comment), []
        opened = _OPEN.match(text)
        if opened:
            current = Block(opened[1], opened[2], note)
            if opened[3]:
                yield current
        elif current is not None and (rpc := _RPC.match(line)):
            request, response = (rpc[2] or "") + rpc[3], (rpc[4] or "") + rpc[5]
            current.members.append((rpc[1], request, response, note))
        elif current is not None and (found := _FIELD.match(line)):
            current.members.append((found[4], found[3], (found[1] or "") + found[2], note))
        elif current is not None and (value := _VALUE.match(line)):
            current.members.append((value[2], value[1], "", note))
        elif line == "}" and current is not None:
            # A `oneof` closes with the same brace, but indented.
            yield current
            current = None


FILES = ("common", "errors", "raft", "commands", "metadata", "admin", "authentication")
"""The .proto files; ``docs/reference/messages/`` shows each in one region."""


def _files() -> list[Path]:
    paths = [PROTO / f"{name}.proto" for name in FILES]
    # Made from the record types, which have a page.
    assert sorted([*paths, PROTO / "records.proto"]) == sorted(PROTO.glob("*.proto"))
    return paths


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def services() -> str:
    rows = []
    for block in (block for path in _files() for block in blocks(path) if block.kind == "service"):
        for name, request, response, _ in block.members:
            rows.append([f"{block.name}.{name}", f"`{request}`", f"`{response}`"])
        if SERVICE_NAME.endswith(f".{block.name}"):
            rows.append([f"{block.name}.{EXCHANGE_METHOD}", "stream of frames", "stream of frames"])
    return table(["Method", "Request", "Response"], rows)


def messages(file: str) -> str:
    """Every message and enum of one .proto file except the error codes, which have a page."""
    parts = [f"## {file}.proto"]
    for block in blocks(PROTO / f"{file}.proto"):
        if block.kind == "service" or block.name == "ErrorCode":
            continue
        parts.append(f"### {block.name}")
        if block.comment:
            parts.append(_cell(block.comment))
        if not block.members:
            parts.append("No fields.")
        elif block.kind == "enum":
            rows = [[number, f"`{name}`", _cell(note)] for number, name, _, note in block.members]
            parts.append(table(["No.", "Name", "Note"], rows))
        else:
            rows = [
                [number, f"`{name}`", kind, _cell(note)]
                for number, name, kind, note in block.members
            ]
            parts.append(table(["No.", "Field", "Type", "Note"], rows))
    return "\n\n".join(parts)


def error_codes() -> str:
    return table(
        ["No.", "Code", "gRPC status", "Retriable"],
        [
            [
                int(each),
                each.name,
                each.status,
                "yes" if each.is_retriable else "",
            ]
            for each in sorted(ErrorCode)
        ],
    )


def codes_without_sender() -> str:
    """The codes that have a number but are never sent."""
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("quorum", "statemachine", "quorate/controller", "quorate/services")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.relative_to(ROOT).as_posix()
        not in ("quorum/errors.py", "quorate/services/errors.py")
    )
    sent = set(CODE_OF_ERROR.values()) | {
        each for each in ErrorCode if re.search(rf"ErrorCode\.{each.name}\b", sources)
    }
    unsent = [each.name for each in sorted(ErrorCode) if each not in sent | {_OF_CLIENTS}]
    return (
        f"{_OF_CLIENTS.name} is reported by client libraries and sent by no node. "
        f"These codes have a number and are not sent so far: {', '.join(unsent)}."
    )


def call_metadata() -> str:
    return table(
        ["Key", "From", "Content"],
        [
            [
                f"`{CLUSTER_ID_KEY}`",
                "node",
                "its cluster: trailing in unary calls and failures, "
                "initial in streams; a client ignores answers of another cluster",
            ],
            [f"`{DETAILS_KEY}`", "node", "the `google.rpc.Status` of a failure"],
        ],
    )


def frame_kinds() -> str:
    kinds: list[tuple[int, str, str]] = [
        (framing.HELLO, "hello", "protobuf `PeerHello`"),
        (framing.GOODBYE, "goodbye, from the server only", "none"),
        (framing.PROBE, "probe, from the server only: does the process still run?", "none"),
        (framing.ALIVE, "alive: the answer to a probe", "none"),
        (
            framing.STATUS,
            "status, from the server and over TCP only: why it ends the stream",
            "words",
        ),
        *((kind, message.__name__, "protobuf") for kind, message in framing._PROTOBUF.items()),
        (packing.FETCH_REQUEST, FetchRequest.__name__, "packed"),
        (packing.FETCH_RESPONSE, FetchResponse.__name__, "packed, then records"),
        (packing.FETCH_SNAPSHOT_REQUEST, FetchSnapshotRequest.__name__, "packed"),
        (packing.FETCH_SNAPSHOT_RESPONSE, FetchSnapshotResponse.__name__, "packed, then the chunk"),
    ]
    return table(
        ["Kind", "Message", "Content after the header"],
        [[f"`{kind:02x}`", name, content] for kind, name, content in sorted(kinds)],
    )


def transport_limits() -> str:
    names = [
        name
        for name, value in vars(limits).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, int | float)
    ]
    return table(["Limit", "Value"], [[f"`{name}`", getattr(limits, name)] for name in names])


def role_transitions() -> str:
    """Return a state diagram: an arrow per pair of roles, labelled with the effect on the epoch."""
    order = ("Unattached", "Prospective", "Candidate", "Leader", "Follower", "Resigned")
    steps: dict[tuple[str, str], set[Step]] = {}
    for before, after, step in TRANSITIONS:
        steps.setdefault((before.__name__, after.__name__), set()).add(step)
    labels = {
        frozenset({Step.SAME}): "same epoch",
        frozenset({Step.HIGHER}): "higher epoch",
        frozenset({Step.SAME, Step.HIGHER}): "same or higher epoch",
    }
    first = ("Unattached", "Follower", "Resigned")
    lines = ["stateDiagram-v2", *(f"    [*] --> {name}" for name in first)]
    for pair in sorted(steps, key=lambda each: (order.index(each[0]), order.index(each[1]))):
        lines.append(f"    {pair[0]} --> {pair[1]}: {labels[frozenset(steps[pair])]}")
    return code("\n".join(lines), "mermaid")


MAKERS: dict[str, Callable[[], str]] = {
    "services": services,
    **{f"messages-{file}": partial(messages, file) for file in FILES},
    "error-codes": error_codes,
    "codes-without-sender": codes_without_sender,
    "call-metadata": call_metadata,
    "frame-kinds": frame_kinds,
    "transport-limits": transport_limits,
    "role-transitions": role_transitions,
}
