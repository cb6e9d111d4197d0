"""Why no plan of a recovery can be made."""

from __future__ import annotations

from quorum.errors import QuorateError


class RecoveryRefusedError(QuorateError):
    """The surviving directories allow no plan; the message says which, and what to do."""
