"""The identity of a caller for quotas: its address and the name in its certificate."""

from __future__ import annotations

from typing import Any, Final

_NAME: Final = "x509_subject_alternative_name"
_TRANSPORT: Final = "transport_security_type"


def caller_of(context: Any) -> str:
    """Return the caller of a call: its host without the port, and its certificate's name.

    Callers behind one address without a certificate count as one. The caller's own claims do not
    count, because it could change them with every call.
    """
    host: str = context.peer().rpartition(":")[0]
    auth = context.auth_context()
    if b"ssl" not in tuple(auth.get(_TRANSPORT, ())):
        return host
    name = next(iter(auth.get(_NAME, ())), b"")
    return f"{host} {name.decode('utf-8', 'backslashreplace')}"
