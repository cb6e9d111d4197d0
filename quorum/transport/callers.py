"""Whose place a call takes: the address it comes from, and whom its certificate names."""

from __future__ import annotations

from typing import Any, Final

_NAME: Final = "x509_subject_alternative_name"
_TRANSPORT: Final = "transport_security_type"


def caller_of(context: Any) -> str:
    """The caller behind a call, for quotas: its host without the port, and its certificate's name.

    Callers behind one address that show no certificate are one caller. What a caller says of
    itself plays no part, because it could say something else with every call.
    """
    host: str = context.peer().rpartition(":")[0]
    auth = context.auth_context()
    if b"ssl" not in tuple(auth.get(_TRANSPORT, ())):
        return host
    name = next(iter(auth.get(_NAME, ())), b"")
    return f"{host} {name.decode('utf-8', 'backslashreplace')}"
