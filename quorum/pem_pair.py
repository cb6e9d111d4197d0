"""A PEM certificate and its private key, loaded; and in words why they do not fit."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

_CERTIFICATE = b"CERTIFICATE-----"
_KEY = b"PRIVATE KEY-----"
_OTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")


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


def encrypted_key(key: Path) -> str:
    """Return the problem of an encrypted key without a password."""
    return f"{key}: the key is encrypted"


def _words(
    error: ssl.SSLError, shown: bytes, secret: bytes, *, certificate: Path, key: Path, password: str
) -> str:
    if _CERTIFICATE not in shown:
        return f"{certificate}: there is no PEM certificate in it"
    if _KEY not in secret:
        return f"{key}: there is no PEM private key in it"
    if error.reason in _OTHER_KEY:
        return f"{key}: it is not the key of the certificate {certificate}"
    if b"ENCRYPTED" in secret:
        return f"{key}: the password is not that of the key" if password else encrypted_key(key)
    reason = (error.reason or "unreadable").lower().replace("_", " ")
    return f"{certificate} with key {key}: {reason}"
