"""The PEM files of a command with TLS, checked before anything connects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quorate.cli.exits import CliError, Exit
from quorate.cli.session import Session
from quorate.config.client_tls import FLAGS, client_tls_problem, is_of_encrypted_key

if TYPE_CHECKING:
    import grpc


def credentials_of(session: Session) -> grpc.ChannelCredentials | None:
    """Return the TLS credentials that the options name; None for clear text.

    Raises:
        CliError: A file cannot be read, or options do not go together.
    """
    session.check_credentials()
    paths = (session.tls_ca, session.tls_key, session.tls_cert)
    if not any(paths):
        return None
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
    problem = client_tls_problem(ca, cert, key, FLAGS)
    if problem:
        raise CliError(
            problem,
            hint="commands take keys without a password, in files of mode 0600"
            if is_of_encrypted_key(problem, key)
            else "",
            code=Exit.USAGE,
        )
