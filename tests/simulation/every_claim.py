"""A core that takes every request's word for its epoch, for tests of the explorer itself."""

from __future__ import annotations

import pytest

from quorum.core.protocol import epoch_claims


def hear_every_claim(patch: pytest.MonkeyPatch) -> None:
    """Let requests raise the epoch also while a leader is heard, as before ADR 44.

    A small model reaches more states so, among them those that the explorer's reductions and its
    books of late requests are about.
    """
    patch.setattr(epoch_claims, "_why_not_raise", lambda core, epoch: "")
