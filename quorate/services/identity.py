"""The caller's name for the audit trail.

The certificate identifies a verified TLS peer; a name that the client declares is then only a
client id. Without a TLS identity the declared name is used with the prefix ``unauthenticated:``,
so that a reader of the log cannot take it for a verified name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quorate.client.limits import TEXT_BYTES_MAX
from quorate.services.calls import Context
from quorum.errors import CommandError, ErrorCode

TLS_PREFIX = "tls:"
UNAUTHENTICATED_PREFIX = "unauthenticated:"
CLIENT_ID_KEY = "quorate-client-id"
"""Metadata key with the client's name, for calls without a field for it."""

_ALTERNATIVE_NAME = "x509_subject_alternative_name"
_COMMON_NAME = "x509_common_name"
_TRANSPORT = "transport_security_type"


def principal_of(auth: Mapping[str, Iterable[bytes]], declared: str) -> str:
    """Return the principal of a caller.

    Args:
        auth: gRPC's authentication context of the call.
        declared: The name that the caller declares; may be empty.

    Returns:
        ``tls:<subject alternative name>`` (or common name) for a verified certificate, else
        ``unauthenticated:<declared>``.
    """
    if b"ssl" in tuple(auth.get(_TRANSPORT, ())):
        for key in (_ALTERNATIVE_NAME, _COMMON_NAME):
            for name in auth.get(key, ()):
                return TLS_PREFIX + name.decode("utf-8", "backslashreplace")
    return UNAUTHENTICATED_PREFIX + declared


def caller(context: Context, declared: str) -> str:
    """Return the principal of a call.

    Raises:
        CommandError: INVALID_REQUEST if the declared name is too long.
    """
    return principal_of(context.auth_context(), bounded_text(declared, "client id"))


def bounded_text(text: str, what: str) -> str:
    """Return ``text``.

    Raises:
        CommandError: INVALID_REQUEST if it is too long for a record header.
    """
    if len(text) > TEXT_BYTES_MAX:
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"{what} has {len(text)} characters, more than {TEXT_BYTES_MAX}",
        )
    return text
