"""TLS credentials from files, read again when the files change.

The same three PEM files serve both directions: a node shows its certificate to those who connect
and to those it connects to, and verifies both kinds with the same authorities. Certificates are
renewed by replacing the files: the next handshake uses them, without a restart. Replacing them
with something unusable changes nothing and is reported.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from quorum.errors import ConfigError

_LOGGER = logging.getLogger(__name__)
_HOSTNAME_MISMATCH: Final = 62
"""X509_V_ERR_HOSTNAME_MISMATCH: the chain is in order, the name is not there."""
_FLIGHTS_MAX: Final = 8
"""A handshake in memory takes three; more would be a loop."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the PEM files are. ``certificate`` is a chain, leaf first."""

    certificate: Path
    key: Path
    authorities: Path
    own_name: str = ""
    """A name that the certificate must carry (``node_names``); empty: any will do."""


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """Contents of the three files, checked to belong together."""

    certificate: bytes
    key: bytes
    authorities: bytes


def load_tls(files: TlsFiles) -> TlsMaterial:
    """Read and check the files.

    Raises:
        ConfigError: A file cannot be read, is not PEM of its kind, or the key is not the
            certificate's, or it lacks ``own_name``. Each problem names its file.
    """
    problems: list[str] = []
    contents: list[bytes] = []
    for path in (files.certificate, files.key, files.authorities):
        try:
            contents.append(path.read_bytes())
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
    if problems:
        raise ConfigError(problems)
    try:
        # gRPC would accept anything here and fail at the first handshake without saying why. An
        # empty password keeps an encrypted key from asking for one on the terminal.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key, password="")
    except (ssl.SSLError, OSError) as error:
        problems.append(f"{files.certificate} with key {files.key}: {error}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(files.authorities)
    except (ssl.SSLError, OSError) as error:
        problems.append(f"{files.authorities}: no usable PEM certificate: {error}")
    if not problems and files.own_name and not _carries_own_name(files):
        problems.append(
            f"{files.certificate}: no subject alternative name {files.own_name}, "
            "which this node's peers will look for"
        )
    if problems:
        raise ConfigError(problems)
    return TlsMaterial(*contents)


class TlsIdentity:
    """This node's certificate, and credentials made from it. Any thread may ask.

    gRPC asks for the server's certificate in threads of its own, at every handshake.
    """

    def __init__(self, files: TlsFiles, *, require_client_certificate: bool = True) -> None:
        """Load the files.

        Raises:
            ConfigError: As ``load_tls``.
        """
        self._files = files
        self._require_client_certificate = require_client_certificate
        self._seen = _signature(files)
        self._material = load_tls(files)

    def current(self) -> TlsMaterial:
        """What the files hold now, or the last usable contents."""
        seen = _signature(self._files)
        if seen != self._seen:
            # Remembered first: an unusable replacement is reported once, not at every handshake.
            self._seen = seen
            try:
                self._material = load_tls(self._files)
            except ConfigError as error:
                _LOGGER.error("renewed certificate cannot be used, keeping the old: %s", error)
        return self._material

    def server_credentials(self) -> grpc.ServerCredentials:
        """For ``add_secure_port``; every handshake uses the newest files.

        With ``require_client_certificate`` a client without a certificate of one of our
        authorities does not get past the handshake.
        """
        in_use = self.current()

        def renewed() -> grpc.ServerCertificateConfiguration | None:
            nonlocal in_use
            material = self.current()
            if material == in_use:
                # gRPC replaces its TLS context for every answer but None, and a handshake in
                # another of its threads may crash the process while it does (seen with 1.85.1).
                return None
            in_use = material
            return _configuration(material)

        return grpc.dynamic_ssl_server_credentials(
            _configuration(in_use), renewed, self._require_client_certificate
        )

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """For ``Link.credentials``: made anew for every connection."""
        material = self.current()
        return grpc.ssl_channel_credentials(
            root_certificates=material.authorities,
            private_key=material.key,
            certificate_chain=material.certificate,
        )


def _carries_own_name(files: TlsFiles) -> bool:
    return carries_name(files.certificate, files.key, files.authorities, files.own_name)


def _configuration(material: TlsMaterial) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.certificate)], root_certificates=material.authorities
    )


def _signature(files: TlsFiles) -> tuple[tuple[int, int, int] | None, ...]:
    """Changes whenever one of the files is replaced or written; None for a missing one."""
    found: list[tuple[int, int, int] | None] = []
    for path in (files.certificate, files.key, files.authorities):
        try:
            status = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


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
