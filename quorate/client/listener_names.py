"""The names of a node's listeners in the answers that list its addresses."""

from __future__ import annotations

from typing import Final

SASL_LISTENER: Final = "SASL"
"""Name of the listener for clients without a certificate."""
CLIENT_LISTENER: Final = "CLIENT"
"""Name of the clients' listener, where a node has one apart from the peers'."""
