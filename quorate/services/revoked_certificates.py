"""Certificates that an authority has revoked: a list (CRL) from a file, reloaded when it changes.

gRPC's Python server cannot read such lists, so the certificate of a caller is checked by
``quorate.services.certificate_gate``. TCP streams are checked by OpenSSL in the handshake.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from quorum.errors import ConfigError
from quorum.watched_file import WatchedFile

_LOGGER = logging.getLogger(__name__)
_EXTRA: Final = "install it with `pip install 'quorate[certs]'`"


class RevokedCertificates:
    """The revoked certificates of one file, which may hold lists of several authorities.

    Any thread may use it. An unusable replacement is reported once, and the last list stays. A list
    beyond its end is used as well: an old list revokes more than none.
    """

    def __init__(
        self, path: Path, authorities: Path, *, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Read the file.

        Raises:
            ConfigError: It cannot be read, holds no list, or one that no authority has signed.
        """
        self._path = path
        self._authorities = authorities
        self._lock = threading.Lock()
        self._file = WatchedFile(path, now_s)
        self._revoked = self._load()

    @property
    def path(self) -> Path:
        """The file of the list."""
        return self._path

    def has(self, issuer: bytes, number: int) -> bool:
        """Whether a certificate is on a list: the issuer's name in DER, and the serial number."""
        with self._lock:
            self._look()
            return (issuer, number) in self._revoked

    def _look(self) -> None:
        if not self._file.has_changed():
            return
        try:
            self._revoked = self._load()
        except ConfigError as error:
            _LOGGER.error("event=crl_unusable error=%s", error)
        else:
            _LOGGER.info("event=crl_loaded revoked=%d", len(self._revoked))

    def _load(self) -> frozenset[tuple[bytes, int]]:
        try:
            from cryptography import x509
            from cryptography.exceptions import UnsupportedAlgorithm
        except ImportError as error:
            raise ConfigError([f"tls.crl_file needs cryptography: {_EXTRA}"]) from error
        try:
            authorities = x509.load_pem_x509_certificates(self._authorities.read_bytes())
            parts = self._path.read_bytes().split(b"-----END X509 CRL-----")[:-1]
            try:
                lists = [
                    x509.load_pem_x509_crl(part + b"-----END X509 CRL-----\n") for part in parts
                ]
            except ValueError as error:
                # The library's words are about its own parser.
                raise ValueError("a PEM list (X509 CRL) in it is damaged") from error
            revoked: set[tuple[bytes, int]] = set()
            for each in lists:
                signers = [one for one in authorities if one.subject == each.issuer]
                if not any(each.is_signature_valid(one.public_key()) for one in signers):  # type: ignore[arg-type]
                    raise ValueError("a list that no authority of tls.ca_file has signed")
                revoked |= {(each.issuer.public_bytes(), one.serial_number) for one in each}
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ConfigError([f"tls.crl_file {self._path}: {error}"]) from error
        if not lists:
            raise ConfigError([f"tls.crl_file {self._path}: no PEM list (X509 CRL) in it"])
        return frozenset(revoked)
