"""A test of this folder shows every refusal in the table of RaftService.

``tests/support/refusals.py`` checks after every test that no other refusal was sent. The core's own
codes are counted over all scenarios.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.answered import Form, Refusal, Service
from quorum.transport.answers import OWN_CODES, STATUSES, kind_of
from quorum.v1 import raft_pb2
from tests.support.refusals import shown_by


def test_every_method_has_a_row() -> None:
    methods = raft_pb2.DESCRIPTOR.services_by_name["RaftService"].methods_by_name
    assert set(STATUSES) == {*methods, "Exchange"}


@pytest.mark.long
def test_every_refusal_of_the_transport_is_shown(tmp_path: Path) -> None:
    """Goal: no row without a test. Method: collect the refusals of this folder's tests."""
    listed = {
        Refusal(Service.PEERS, method, Form.STATUS, status.name)
        for method, statuses in STATUSES.items()
        for status in statuses
    } | {
        Refusal(Service.PEERS, kind_of(request), Form.ANSWER, code.name)
        for request, codes in OWN_CODES.items()
        for code in codes
    }
    assert listed - shown_by("tests/unit/transport", tmp_path / "refusals") == set()
