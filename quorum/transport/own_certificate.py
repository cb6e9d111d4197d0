"""Whether a certificate carries a name, asked of OpenSSL instead of parsing it ourselves."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

_HOSTNAME_MISMATCH: Final = 62
"""X509_V_ERR_HOSTNAME_MISMATCH: the chain is in order, the name is not there."""
_FLIGHTS_MAX: Final = 8
"""A handshake in memory takes three; more would be a loop."""


def carries_name(certificate: Path, key: Path, authorities: Path, name: str) -> bool:
    """Whether a client that expects ``name`` would be content with this certificate's names.

    A handshake with ourselves, in memory. What else may be wrong with the chain is not evaluated:
    peers may hold authorities that this node does not have any more.

    Raises:
        OSError: A file cannot be read; ``ssl.SSLError`` is one.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key, password="")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(authorities)
    client.hostname_checks_common_name = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(_FLIGHTS_MAX):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_code != _HOSTNAME_MISMATCH
            if end is ends[0]:
                return True
    return True
