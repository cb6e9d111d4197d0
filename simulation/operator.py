"""What simulated operators say when they ask for a change of the quorum."""

from __future__ import annotations

from typing import Final

from quorum.control_records import Origin
from quorum.types import NodeId

OPERATOR: Final = "User:operator"


def asked(verb: str, node_id: NodeId) -> Origin:
    """Return the origin of a request; its reason states what the request asks for."""
    return Origin(OPERATOR, f"{verb} {node_id}")
