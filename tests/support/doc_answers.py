"""Tables of docs/protocol.md: what services refuse, and how."""

from __future__ import annotations

from collections.abc import Iterator

from quorum.core.answers import ANSWERS
from quorum.transport.answers import STATUSES, codes_of, kind_of
from tests.support.doc_regions import table


def peer_refusals() -> str:
    """By request or method of RaftService: codes in answers, statuses that end the call."""
    return table(["Request", "Error codes in answers", "Statuses that end a call"], _peer_rows())


def _peer_rows() -> Iterator[list[str]]:
    left = {method: sorted(each.name for each in found) for method, found in STATUSES.items()}
    for request in ANSWERS:
        kind = kind_of(request)
        codes = ", ".join(code.name for code in sorted(codes_of(request)))
        yield [kind, codes, ", ".join(left.pop(kind, [])) or "as Exchange"]
    for method, statuses in left.items():
        yield [f"{method}: the stream itself", "", ", ".join(statuses)]


MAKERS = {"peer-refusals": peer_refusals}
