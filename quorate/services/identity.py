"""The caller's name for the audit trail.

The certificate identifies a verified TLS peer; a name that the client declares is then only a
client id. Without a TLS identity the declared name is used with the prefix ``unauthenticated:``,
so that a reader of the log cannot take it for a verified name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from quorate.client.limits import TEXT_BYTES_MAX
from quorate.services.calls import Context
from quorum.errors import CommandError, ErrorCode

TLS_PREFIX = "tls:"
UNAUTHENTICATED_PREFIX = "unauthenticated:"
ANONYMOUS = "ANONYMOUS"

IdentityKey: TypeAlias = tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[bytes, ...]]

_ALTERNATIVE_NAME = "x509_subject_alternative_name"
_COMMON_NAME = "x509_common_name"
_TRANSPORT = "transport_security_type"
_CERTIFICATE = "x509_pem_cert"
_NO_CERTIFICATE = b"ssl without a certificate"


def principal_of(auth: Mapping[str, Iterable[bytes]], declared: str) -> str:
    """Return the principal of a caller.

    Args:
        auth: gRPC's authentication context of the call.
        declared: The name that the caller declares; may be empty.

    Returns:
        ``tls:<subject alternative name>`` (or common name) for a verified certificate, else
        ``unauthenticated:<declared>``.
    """
    name = _certificate_name(auth)
    return UNAUTHENTICATED_PREFIX + declared if name is None else TLS_PREFIX + name


def principal_name(auth: Mapping[str, Iterable[bytes]]) -> str:
    """Return the name that ACLs know a caller by: that of its certificate, else ANONYMOUS."""
    name = _certificate_name(auth)
    return ANONYMOUS if name is None else name


def identity_key(auth: Mapping[str, Iterable[bytes]]) -> IdentityKey:
    """Return everything that names and roles are worked out from, as a key."""
    if is_without_certificate(auth):
        return (_NO_CERTIFICATE,), (), ()
    return (
        tuple(auth.get(_TRANSPORT, ())),
        tuple(auth.get(_ALTERNATIVE_NAME, ())),
        tuple(auth.get(_COMMON_NAME, ())),
    )


def is_without_certificate(auth: Mapping[str, Iterable[bytes]]) -> bool:
    """Whether a TLS caller has shown no certificate, as the listener for tokens permits."""
    return b"ssl" in tuple(auth.get(_TRANSPORT, ())) and not tuple(auth.get(_CERTIFICATE, ()))


def _certificate_name(auth: Mapping[str, Iterable[bytes]]) -> str | None:
    """Return the first alternative name of a verified certificate, else its common name."""
    if b"ssl" in tuple(auth.get(_TRANSPORT, ())):
        for key in (_ALTERNATIVE_NAME, _COMMON_NAME):
            for name in auth.get(key, ()):
                return name.decode("utf-8", "backslashreplace")
    return None


def caller(context: Context, declared: str, proved: str | None = None) -> str:
    """Return the principal of a call; ``proved`` is the one of its token, if it has one.

    Raises:
        CommandError: INVALID_REQUEST if the declared name is too long.
    """
    known = bounded_text(declared, "client id")
    return principal_of(context.auth_context(), known) if proved is None else proved


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
