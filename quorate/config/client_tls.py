"""The PEM files of a client with TLS, checked before anything connects.

gRPC takes any content, and fails later without a reason.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final, NamedTuple

from quorate.config.secret_files import secret_mode_problem
from quorum.pem_pair import authorities_problem, encrypted_key, pair_problem


class TlsNames(NamedTuple):
    """What the three files are called where they are named."""

    ca: str
    certificate: str
    key: str


FLAGS: Final = TlsNames("--tls-ca", "--tls-cert", "--tls-key")
OPTIONS: Final = TlsNames("option tlsCa", "option tlsCert", "option tlsKey")


def client_tls_problem(
    ca: Path | None, certificate: Path | None, key: Path | None, names: TlsNames
) -> str:
    """Return why no connection can be made with the files, or empty text.

    A file cannot be read, holds no certificate or a damaged one, the key is encrypted or another
    certificate's, or everybody may read or change it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is not None and (problem := authorities_problem((context,), ca)):
        return f"{names.ca} {problem}"
    if certificate is None or key is None:
        return ""
    if problem := pair_problem((context,), certificate, key):
        is_certificate = problem.startswith(f"{certificate}: ")
        name = names.certificate if is_certificate else names.key
        return f"{name} {problem}"
    try:
        problem = secret_mode_problem(key)
    except OSError as error:
        problem = f"{key}: {error.strerror or error}"
    return problem and f"{names.key} {problem}"


def is_of_encrypted_key(problem: str, key: Path | None) -> bool:
    """Return whether a problem found is that the key has a password."""
    return key is not None and problem.endswith(encrypted_key(key))
