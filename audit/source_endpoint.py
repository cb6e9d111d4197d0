"""The log over the network for the Spark source: checked options, a copy, and what is in the way.

What needs the client is loaded by its name: executors get this module without a client.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from audit.errors import AuditError

CONNECTION = ("tlsCa", "tlsCert", "tlsKey", "user", "passwordFile", "tokenFile")
_NEEDED = (
    ("tlsCert", "tlsKey"),
    ("tlsKey", "tlsCert"),
    ("tlsCert", "tlsCa"),
    ("user", "passwordFile"),
    ("passwordFile", "user"),
)
"""Options of a connection that mean nothing alone. gRPC ends the process if it has a certificate or
a key alone."""
_MODULES = (
    "quorate.log_mirror",
    "quorate.client.errors",
    "quorate.config.addresses",
    "quorate.cli.reachability",
)
_WORDS = {
    "--tls-ca": "option tlsCa",
    "--tls-cert": "option tlsCert",
    "--tls-key": "option tlsKey",
    "--bootstrap": "option endpoint",
    "this command": "this query",
}
"""Words of the command line, and what they are called here."""


def fetch_copy(path: Path, endpoints: Sequence[str], options: Mapping[str, str]) -> None:
    """Fetch what is new of the log of a cluster into ``path``.

    Raises:
        AuditError: An option is wrong or lacks another; the client is not installed here; no node
            answered, with what is in the way at each address; or one refused.
        StorageError: A file cannot be read or written.
    """
    for option, needed in _NEEDED:
        if option in options and needed not in options:
            raise AuditError(f"option {option} needs option {needed}")
    try:
        mirror, errors, addresses, reachability = map(importlib.import_module, _MODULES)
    except ImportError as error:
        raise AuditError(
            "option endpoint needs Quorate, with grpcio, in the Python that plans queries "
            f"(PYSPARK_PYTHON on the driver): {error}"
        ) from error
    if not endpoints:
        raise AuditError("option endpoint is empty, expected host:port of nodes")
    try:
        for endpoint in endpoints:
            addresses.parse_address(endpoint)
    except ValueError as error:
        raise AuditError(f"option endpoint: {error}") from error
    try:
        mirror.fetch_log_into(path, endpoints, options)
    except AuditError as error:
        if not isinstance(error.__cause__, errors.UnavailableError):
            raise
        found = _obstacles(reachability, endpoints, options)
        if not found:
            raise
        # Without its cause: Spark prints the whole chain, but only this line helps.
        raise AuditError(f"no node answered: {'; '.join(found)}") from None


def _obstacles(
    reachability: Any, endpoints: Sequence[str], options: Mapping[str, str]
) -> list[str]:
    """Return what is in the way at each address that does not answer as a node would."""
    tls = None
    if "tlsCa" in options:
        files = (Path(options[name]) if name in options else None for name in CONNECTION[:3])
        tls = reachability.TlsPaths(*files)
    found = []
    for endpoint in endpoints:
        try:
            obstacle = reachability.obstacle_now(endpoint, tls)
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror or "unknown"
            words = str(reason).lower().replace("_", " ")
            found.append(f"{endpoint}: no TLS with the files of options tlsCa, tlsCert: {words}")
            continue
        if obstacle is not None:
            hint = f" ({obstacle.hint})" if obstacle.hint else ""
            text = f"{endpoint}: {obstacle.cause}{hint}"
            for word, ours in _WORDS.items():
                text = text.replace(word, ours)
            found.append(text)
    return found
