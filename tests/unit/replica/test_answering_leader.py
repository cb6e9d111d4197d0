"""The leader that is shown is one that answers."""

from __future__ import annotations

import pytest

from quorate.replica.answering_leader import answering_leader
from tests.support.core_situations import SITUATIONS


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_leader_is_shown_while_it_leads_and_answers(situation: str) -> None:
    cluster, node_id = SITUATIONS[situation]()
    node = cluster[node_id]
    shown = answering_leader(node)
    if node.is_leader:
        assert shown == node_id
    elif node.role_name in ("Prospective", "Candidate", "Resigned", "Unattached"):
        assert shown == -1
    else:
        assert shown in (-1, node.leader_id)
    if situation in ("follower", "observer"):
        assert shown == 1
