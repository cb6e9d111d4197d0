"""The freshness of a replica, as a value.

See: ``quorum.core.liveness.freshness``, which determines it; ADR 9.
"""

from __future__ import annotations

from quorum.values import value


@value
class Freshness:
    """All records acknowledged before ``as_of_ms`` are below ``end_offset``. -1: never known."""

    as_of_ms: int
    end_offset: int


NEVER_KNOWN = Freshness(-1, -1)
