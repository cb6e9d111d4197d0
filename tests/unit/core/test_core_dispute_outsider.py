"""A dispute with a leader that this voter does not know as one: it has no voice in the verdict."""

from __future__ import annotations

import pytest

from tests.unit.core.test_core_dispute import THEIRS, Table


@pytest.mark.parametrize("votes", [True, False])
def test_only_a_voters_history_counts(votes: bool) -> None:
    """Two of three hold the other history, or one of three and an outsider."""
    table = Table(leads=False)
    table.answers[3] = THEIRS
    table.open()
    dispute = table.cluster[2].chain.dispute
    assert dispute is not None
    dispute.opponent_votes = votes
    table.verified()
    table.run()
    settled = table.settled()
    assert settled is not None
    expected = "a majority holds another" if votes else "no majority holds the same"
    assert settled.outcome == f"{expected} history"
