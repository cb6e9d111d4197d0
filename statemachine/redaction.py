"""Which contents of records are secrets, and what people see in their place.

Dumps, exports, watches and descriptions of configurations hide them, and so do the batches that
clients get. The log and checkpoints have them, for replicas and operators.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "(hidden)"
SECRET_FIELDS: Final = frozenset({"salt", "stored_key", "server_key"})
"""Fields of credential records."""
SECRET_WORDS: Final = (
    "password", "passwd", "passphrase", "secret", "jaas.config", "credential", "keystore.key",
    "private.key", "master.key", "account.key", "api.key", "access.token", "auth.token",
    "sas.token", "session.token",
)  # fmt: skip
"""A configuration key that has one of these in it holds a secret."""
_SECRET_CONFIG: Final = re.compile("|".join(map(re.escape, SECRET_WORDS)), re.IGNORECASE)


def is_secret_config(name: str) -> bool:
    """Whether the value of a configuration key is a secret, decided by the key's name.

    Kafka's keys of type PASSWORD that are secret all match, also with a listener's prefix. A key
    that matches without being secret is hidden as well.
    """
    return _SECRET_CONFIG.search(name) is not None


def shown_config(name: str, value: str | None) -> str | None:
    """Return a configuration value for people: hidden if it is a secret."""
    return REDACTED if value is not None and is_secret_config(name) else value
