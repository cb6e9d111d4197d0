"""What a caller's certificate says about its own validity, besides its names.

Python's gRPC has the certificate as text; reading it needs the library cryptography (extra
``certs``).
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

KNOWN_MAX: Final = 1_000
"""Certificates that are remembered; beyond that all are forgotten."""
_CERTIFICATE: Final = "x509_pem_cert"


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """One certificate."""

    issuer: bytes
    """The issuer's name in DER."""
    number: int
    """Its serial number, which the issuer gives once."""
    not_after_s: float
    """The last second of its validity, as Unix time."""


UNREADABLE: Final = ShownCertificate(b"", -1, math.inf)
"""In place of a certificate that TLS accepts and the library does not."""


class ShownCertificates:
    """Reads the certificates of callers. Owned by the event loop."""

    def __init__(self) -> None:
        # Loaded now: it takes long enough to delay what a node's loop does.
        from cryptography import x509

        self._parse = x509.load_pem_x509_certificate
        self._known: dict[bytes, ShownCertificate] = {}

    def of(self, auth: Mapping[str, Iterable[bytes]]) -> ShownCertificate | None:
        """Return the certificate in gRPC's authentication context of a call; None without one."""
        pem = next(iter(auth.get(_CERTIFICATE, ())), None)
        return None if pem is None else self.read(pem)

    def read(self, pem: bytes) -> ShownCertificate:
        """Return what a certificate says."""
        found = self._known.get(pem)
        if found is None:
            try:
                certificate = self._parse(pem)
                found = ShownCertificate(
                    certificate.issuer.public_bytes(),
                    certificate.serial_number,
                    certificate.not_valid_after_utc.timestamp(),
                )
            except ValueError:
                found = UNREADABLE
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[pem] = found
        return found


def can_read_certificates() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("cryptography") is not None
