"""The error for a directory that cannot be adopted or released."""

from __future__ import annotations

from quorum.errors import QuorateError


class AdoptionRefusedError(QuorateError):
    """A directory that cannot be adopted or released as it is; nothing was changed."""
