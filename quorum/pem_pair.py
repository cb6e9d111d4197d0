"""PEM certificates and private keys, loaded; and in words why they cannot be used.

OpenSSL names most of this as a failure of its own parts. The words here name the file.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

_CERTIFICATE = b"CERTIFICATE-----"
_KEY = b"PRIVATE KEY-----"
_OTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")
_TOO_WEAK = {
    "EE_KEY_TOO_SMALL": "its key is too short for TLS, or the certificate is damaged",
    "CA_MD_TOO_WEAK": "its signature is too weak for TLS",
}
_AGAIN = "copy it again, or have it issued again"


def pair_problem(
    contexts: Iterable[ssl.SSLContext], certificate: Path, key: Path, password: str = ""
) -> str:
    """Load the pair into every context; return why that fails, naming a file, or empty text.

    There is never a prompt: a key that is encrypted needs ``password``.
    """
    shown = secret = b""
    try:
        shown, secret = certificate.read_bytes(), key.read_bytes()
        for context in contexts:
            context.load_cert_chain(certificate, key, password=password)
    except ssl.SSLError as error:
        return _words(error, shown, secret, certificate=certificate, key=key, password=password)
    except OSError as error:
        return f"{error.filename}: {error.strerror or error}"
    return ""


def authorities_problem(contexts: Iterable[ssl.SSLContext], authorities: Path) -> str:
    """Load the certificates into every context as authorities; return why not, or empty text."""
    content = b""
    try:
        content = authorities.read_bytes()
        for context in contexts:
            context.load_verify_locations(authorities)
    except ssl.SSLError:
        is_missing = _CERTIFICATE not in content
        return no_certificate(authorities) if is_missing else _damaged(authorities, "certificate")
    except OSError as error:
        return f"{authorities}: {error.strerror or error}"
    return ""


def no_certificate(path: Path) -> str:
    """Return the problem of a file without a certificate."""
    return f"{path}: there is no PEM certificate in it"


def encrypted_key(key: Path) -> str:
    """Return the problem of an encrypted key without a password."""
    return f"{key}: the key is encrypted"


def _words(
    error: ssl.SSLError, shown: bytes, secret: bytes, *, certificate: Path, key: Path, password: str
) -> str:
    if _CERTIFICATE not in shown:
        return no_certificate(certificate)
    if _KEY not in secret:
        return f"{key}: there is no PEM private key in it"
    if error.reason in _OTHER_KEY:
        return f"{key}: it is not the key of the certificate {certificate}"
    if b"ENCRYPTED" in secret:
        return f"{key}: the password is not that of the key" if password else encrypted_key(key)
    if words := _TOO_WEAK.get(error.reason or ""):
        return f"{certificate}: {words}"
    if authorities_problem((ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),), certificate):
        return _damaged(certificate, "certificate")
    return _damaged(key, "private key")


def _damaged(path: Path, what: str) -> str:
    return f"{path}: the PEM {what} in it is damaged; {_AGAIN}"
