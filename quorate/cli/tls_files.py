"""The PEM files of a command with TLS, checked before anything connects."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.cli.exits import CliError, Exit
from quorate.cli.session import Session
from quorate.config.secret_files import secret_mode_problem

if TYPE_CHECKING:
    import grpc


def credentials_of(session: Session) -> grpc.ChannelCredentials | None:
    """Return the TLS credentials that the options name; None for clear text.

    Raises:
        CliError: A file cannot be read, or one of a pair is missing.
    """
    paths = (session.tls_ca, session.tls_key, session.tls_cert)
    if not any(paths):
        return None
    if bool(session.tls_key) != bool(session.tls_cert):
        raise CliError("--tls-cert and --tls-key belong together", code=Exit.USAGE)
    check_tls_files(*paths)
    import grpc

    try:
        return grpc.ssl_channel_credentials(
            *(path.read_bytes() if path is not None else None for path in paths)
        )
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}", code=Exit.USAGE) from error


def check_tls_files(ca: Path | None, key: Path | None, cert: Path | None) -> None:
    """Refuse files that no connection can be made with, and a key that is no secret.

    Raises:
        CliError: One cannot be read, holds no certificate, the key is another certificate's, or
            everybody may read or change it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if ca is not None:
            _load_authorities(context, ca)
        if cert is not None and key is not None:
            for each in (cert, key):
                each.read_bytes()
            _load_pair(context, cert, key)
            if problem := secret_mode_problem(key):
                raise CliError(f"--tls-key {problem}", code=Exit.USAGE)
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
