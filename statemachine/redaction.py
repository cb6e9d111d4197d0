"""Which contents of records are secrets, and what people see in their place.

Dumps, exports and descriptions of configurations hide them. The log, checkpoints and whoever may
read the log have them.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "(hidden)"
SECRET_FIELDS: Final = frozenset({"salt", "stored_key", "server_key"})
"""Fields of credential records."""
_SECRET_CONFIG: Final = re.compile(
    r"password|secret|jaas\.config|keystore\.key|credential|private\.key", re.IGNORECASE
)


def is_secret_config(name: str) -> bool:
    """Whether the value of a configuration key is a secret, decided by the key's name.

    Kafka's keys of type PASSWORD that are secret all match, also with a listener's prefix. A key
    that matches without being secret is hidden as well.
    """
    return _SECRET_CONFIG.search(name) is not None


def shown_config(name: str, value: str | None) -> str | None:
    """Return a configuration value for people: hidden if it is a secret."""
    return REDACTED if value is not None and is_secret_config(name) else value
