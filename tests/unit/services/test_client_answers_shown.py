"""A test of this folder shows every refusal in the table of the client services.

``tests/support/refusals.py`` checks after every test that no other refusal was sent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.services.answers import ANSWERS, HEALTH_AND_REFLECTION
from quorum.v1 import admin_pb2, authentication_pb2, metadata_pb2
from tests.support.refusals import client_refusals, shown_by


def test_every_method_has_a_row() -> None:
    names = [
        method
        for module in (metadata_pb2, admin_pb2, authentication_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods_by_name
    ]
    assert sorted(ANSWERS) == sorted([*names, HEALTH_AND_REFLECTION])


@pytest.mark.long
def test_every_refusal_is_shown(tmp_path: Path) -> None:
    """Goal: no row without a test. Method: collect the refusals of this folder's tests."""
    found = shown_by("tests/unit/services", tmp_path / "refusals")
    assert client_refusals() - found == set()
