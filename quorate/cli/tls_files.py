"""The PEM files of a command with TLS, checked before anything connects."""

from __future__ import annotations

import ssl
from pathlib import Path

from quorate.cli.exits import CliError, Exit


def check_tls_files(ca: Path | None, key: Path | None, cert: Path | None) -> None:
    """Refuse files that no connection can be made with.

    Raises:
        CliError: One cannot be read, holds no certificate, or the key is another certificate's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if ca is not None:
            _load_authorities(context, ca)
        if cert is not None and key is not None:
            for each in (cert, key):
                each.read_bytes()
            _load_pair(context, cert, key)
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}", code=Exit.USAGE) from error


def _load_authorities(context: ssl.SSLContext, ca: Path) -> None:
    ca.read_bytes()
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError as error:
        raise CliError(
            f"--tls-ca {ca}: there is no PEM certificate in it", code=Exit.USAGE
        ) from error


def _load_pair(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    def refuse() -> str:
        raise CliError(
            f"--tls-key {key}: the key is encrypted",
            hint="commands take keys without a password, in files of mode 0600",
            code=Exit.USAGE,
        )

    try:
        context.load_cert_chain(cert, key, password=refuse)
    except ssl.SSLError as error:
        words = (error.reason or "no PEM certificate and key").lower().replace("_", " ")
        raise CliError(
            f"--tls-cert {cert} and --tls-key {key} cannot be used together: {words}",
            code=Exit.USAGE,
        ) from error
