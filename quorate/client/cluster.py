"""Which cluster answers: named in every answer, so that a client detects nodes of other clusters.

A node's port may belong to another process once the node is down, and that process may be a
node of another cluster. Its epochs and its leader mean nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable

CLUSTER_ID_KEY = "quorate-cluster-id"
"""Key of the answering node's cluster id: in the trailing metadata of unary calls and of every
failure, in the initial metadata of streams."""


def cluster_named(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """The cluster id in a call's metadata; empty when there is none."""
    for key, value in metadata or ():
        if key == CLUSTER_ID_KEY and isinstance(value, str):
            return value
    return ""
