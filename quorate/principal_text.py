"""Who made a change, as people read it. The log and documents keep the recorded text."""

from __future__ import annotations

from typing import Final

_WITHOUT_NAME: Final = "unauthenticated:"
"""What ``services.identity`` records of a client without certificate, token and client id."""

PRINCIPAL_COLUMNS: Final = frozenset({"principal", "last_principal"})
"""The columns of tables that show who made a change."""


def principal_text(principal: str) -> str:
    """Return a recorded principal; one of which only the prefix is recorded with the reason."""
    return "unauthenticated (no client id)" if principal == _WITHOUT_NAME else principal
