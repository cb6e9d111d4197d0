"""Both forms of an agent: every story holds whichever way it reads the metadata."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["watch", "observer"])
def form(request: pytest.FixtureRequest) -> str:
    """How the agent reads the metadata."""
    return str(request.param)
