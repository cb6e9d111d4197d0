"""Where the console may listen: on loopback, or with TLS and a token, or unsafely on purpose.

The rules are those of a node (ADR 61): what is open for everybody is never so by mistake.
"""

from __future__ import annotations

import hmac
import ssl
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.config.addresses import parse_address
from quorate.config.secret_files import secret_mode_problem
from quorate.config.security import is_loopback
from quorum.errors import QuorumUsageError
from quorum.pem_pair import pair_problem

TOKEN_BYTES_MIN: Final = 16
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Binding:
    """The console's own listener, checked."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    token: bytes = b""
    """What a visitor must show; empty for nothing."""
    host_names: tuple[str, ...] = ()
    """Names that a request may be for; empty for all. It keeps foreign pages from reading ours."""

    def admits(self, authorization: str) -> bool:
        """Whether this Authorization header shows the token, as a bearer or as a password."""
        if not self.token:
            return True
        scheme, _, shown = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                shown = b64decode(shown.strip(), validate=True).decode().partition(":")[2]
            except (Base64Error, UnicodeDecodeError):
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(shown.strip().encode(), self.token)


def checked_binding(
    listen: str,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    token_file: Path | None = None,
    host_names: tuple[str, ...] = (),
    is_unsafe_allowed: bool = False,
) -> Binding:
    """Return the listener that the options describe.

    Raises:
        QuorumUsageError: The address is none, a file of a pair is missing, the pair does not fit,
            everybody may read or change its key, the token is too short, or others could reach the
            port without TLS and a token.
    """
    try:
        host, port = parse_address(listen)
    except ValueError as error:
        raise QuorumUsageError(f"--listen: {error}") from error
    if (certificate is None) != (key is None):
        raise QuorumUsageError("--server-cert and --server-key belong together")
    if certificate is not None and key is not None:
        _check_pair(certificate, key)
    token = b"" if token_file is None else _token(token_file)
    is_open = not is_loopback(listen)
    if is_open and not is_unsafe_allowed and (certificate is None or not token):
        missing = [
            *(["--server-cert and --server-key"] if certificate is None else []),
            *([] if token else ["--token-file"]),
        ]
        raise QuorumUsageError(
            f"{listen} can be reached from other machines; add {' and '.join(missing)}, listen on "
            "127.0.0.1, or accept that everybody there sees the cluster: "
            "--unsafe-insecure-listener"
        )
    names = host_names or (() if is_open else _LOOPBACK_NAMES)
    return Binding(host, port, certificate, key, token, names)


def _check_pair(certificate: Path, key: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if problem := pair_problem((context,), certificate, key):
        raise QuorumUsageError(f"--server-cert and --server-key: {problem}")
    if problem := secret_mode_problem(key):
        raise QuorumUsageError(f"--server-key {problem}")


def _token(path: Path) -> bytes:
    try:
        token = path.read_bytes().strip()
        is_readable_by_others = path.stat().st_mode & 0o007
    except OSError as error:
        raise QuorumUsageError(f"{path}: {error.strerror}") from error
    if is_readable_by_others:
        raise QuorumUsageError(f"{path} can be read by everybody; `chmod 600` it")
    if len(token) < TOKEN_BYTES_MIN:
        raise QuorumUsageError(f"{path}: a token has at least {TOKEN_BYTES_MIN} bytes")
    return token
