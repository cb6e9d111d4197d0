"""Tables of docs/reference/error-codes.md: which requests services refuse, and in which form."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.services import answers as clients
from quorum.core.messages.message_types import REQUESTS
from quorum.core.messages.refusals import Codes
from quorum.transport.answers import STATUSES, codes_of, kind_of
from tests.support.doc_regions import table


def peer_refusals() -> str:
    """Error codes and gRPC statuses by request or method of RaftService."""
    return table(["Request", "Error codes in answers", "Statuses that end a call"], _peer_rows())


def _peer_rows() -> Iterator[list[str]]:
    left = {method: sorted(each.name for each in found) for method, found in STATUSES.items()}
    for request in REQUESTS:
        kind = kind_of(request)
        codes = ", ".join(code.name for code in sorted(codes_of(request)))
        yield [kind, codes, ", ".join(left.pop(kind, [])) or "as Exchange"]
    for method, statuses in left.items():
        yield [f"{method}: the stream itself", "", ", ".join(statuses)]


def client_refusals() -> str:
    """Return, by client service method, its error codes: of the call, of a command, of a part."""
    rows = []
    for method, found in clients.ANSWERS.items():
        shared = clients.COMMAND_CODES if method in ("Write", "WriteStream") else frozenset()
        statuses, answers = _texts(found.statuses - shared), _texts(found.answers - shared)
        if method == "Write":
            statuses += "; or as a command"
        if method == "WriteStream":
            statuses = _texts(found.statuses)
            answers += "; or as a command"
        rows.append([method, statuses, answers, _texts(found.parts)])
    return table(["Method", "Reasons that end it", "Answers", "Of a part"], rows)


def command_refusals() -> str:
    """Return the error codes of a command."""
    return f"A command: {_texts(clients.COMMAND_CODES)}."


def _texts(codes: Codes) -> str:
    return ", ".join(code.name for code in sorted(codes))


MAKERS = {
    "peer-refusals": peer_refusals,
    "client-refusals": client_refusals,
    "command-refusals": command_refusals,
}
