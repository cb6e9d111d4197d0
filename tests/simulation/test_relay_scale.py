"""The leader's load does not grow with the observers behind relays."""

from __future__ import annotations

from quorate.sim.relay_scale import TOP_RELAYS, Tree


def test_the_leaders_load_stays_flat_behind_relays() -> None:
    """Goal: messages and bytes at the leader. Method: 50 and 200 observers, and 50 without."""
    few = Tree(50, with_relays=True).measure()
    many = Tree(200, with_relays=True).measure()
    without = Tree(50, with_relays=False).measure()
    assert few.fetching_directly == many.fetching_directly == TOP_RELAYS
    assert many.messages <= few.messages * 1.05
    assert many.bytes <= few.bytes * 1.05
    assert without.messages > few.messages * 3
    assert few.missing == many.missing == without.missing == 0
    assert many.percentile(100) < 50
