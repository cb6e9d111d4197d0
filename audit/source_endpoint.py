"""The log over the network for the Spark source: checked options, a copy, and what is in the way.

What needs the client is loaded by its name: executors get this module without a client.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from audit.errors import AuditError

PATIENCE_S = 0.7
"""How long a node may refuse connections, because it starts; as for commands."""
_AGAIN_S = 0.25
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

    def check() -> None:
        _refuse_dead_ends(reachability, endpoints, options)

    try:
        mirror.fetch_log_into(path, endpoints, options, before_asking=check)
    except AuditError as error:
        if not isinstance(error.__cause__, errors.UnavailableError):
            raise
        found = reachability.obstacles_now(endpoints, _tls_paths(reachability, options))
        if not found:
            raise
        # Without its cause: Spark prints the whole chain, but only this line helps.
        raise _no_answer(found) from None


def _refuse_dead_ends(
    reachability: Any, endpoints: Sequence[str], options: Mapping[str, str]
) -> None:
    """Refuse addresses of which none can answer, as commands do; a node that is late is waited for.

    Raises:
        AuditError: With what is in the way at each, if all are lasting, or for ``PATIENCE_S``.
    """
    tls = _tls_paths(reachability, options)
    give_up_at = time.monotonic() + PATIENCE_S
    while found := reachability.obstacles_now(endpoints, tls):
        if any(each.is_slow for each in found.values()):
            return
        is_lasting = all(each.is_lasting for each in found.values())
        if is_lasting or time.monotonic() >= give_up_at:
            raise _no_answer(found)
        time.sleep(_AGAIN_S)


def _tls_paths(reachability: Any, options: Mapping[str, str]) -> Any:
    if "tlsCa" not in options:
        return None
    files = (Path(options[name]) if name in options else None for name in CONNECTION[:3])
    return reachability.TlsPaths(*files)


def _no_answer(found: Mapping[str, Any]) -> AuditError:
    """Return the error with what is in the way at each address, in the words of the options."""
    texts = []
    for endpoint, obstacle in found.items():
        hint = f" ({obstacle.hint})" if obstacle.hint else ""
        text = f"{endpoint}: {obstacle.cause}{hint}"
        for word, ours in _WORDS.items():
            text = text.replace(word, ours)
        texts.append(text)
    return AuditError(f"no node answered: {'; '.join(texts)}")
