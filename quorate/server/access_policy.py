"""The access policy that a node's configuration asks for."""

from __future__ import annotations

import time
from collections.abc import Callable

from quorate.config.security import BOUND, SecurityConfig
from quorate.server.jwt_tokens import jwt_tokens
from quorate.services.access import AccessPolicy
from quorate.services.tokens import Tokens
from quorum.transport.node_names import NodeNames


def access_policy(
    config: SecurityConfig, names: NodeNames | None, on_denied: Callable[[str], None]
) -> AccessPolicy | None:
    """Return what the node enforces; None: every caller may do everything.

    ``on_denied`` is called for every denial with its cause.

    Raises:
        ConfigError: Tokens cannot be verified as configured.
    """
    if config.mode != BOUND or names is None:
        return None
    return AccessPolicy(
        names,
        frozenset(config.operators),
        config.allow_everyone_if_no_acl_found,
        on_denied,
        Tokens(config.token_lifetime_ms / 1000, time.monotonic, jwt_tokens(config)),
        config.failed_authentication_delay_ms / 1000,
    )
