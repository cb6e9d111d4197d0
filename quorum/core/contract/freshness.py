"""Since when a replica may lack something that was acknowledged elsewhere, as a value.

See: ``quorum.core.liveness.freshness``, which finds it out; ADR 9.
"""

from __future__ import annotations

from quorum.values import value


@value
class Freshness:
    """Everything acknowledged before ``as_of_ms`` lies below ``end_offset``. -1: never known."""

    as_of_ms: int
    end_offset: int


NEVER_KNOWN = Freshness(-1, -1)
