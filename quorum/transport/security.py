"""TLS credentials from files, reloaded when the files change.

The same three PEM files serve both directions: a node shows its certificate to clients and
servers, and verifies both with the same authorities. Replacing the files renews a certificate: the
next handshake uses them, without a restart. An unusable replacement is reported and ignored.
"""

from __future__ import annotations

import logging
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import grpc

from quorum.errors import ConfigError
from quorum.pem_pair import authorities_problem, encrypted_key, pair_problem
from quorum.watched_file import FileSignature, file_signature

_LOGGER = logging.getLogger(__name__)
_HOSTNAME_MISMATCH: Final = 62
"""X509_V_ERR_HOSTNAME_MISMATCH: the chain is valid, but the name is missing."""
_OF_EVERYBODY: Final = stat.S_IROTH | stat.S_IWOTH
"""A group may read a key: that is how secrets are mounted into containers."""
_FLIGHTS_MAX: Final = 8
"""Bound of message flights; an in-memory handshake takes three."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of the PEM files. ``certificate`` is a chain, leaf first."""

    certificate: Path
    key: Path
    authorities: Path
    own_names: tuple[str, ...] = ()
    """Names of which the certificate must carry one (``node_names``); empty: any name."""
    key_password: str = field(default="", repr=False)
    """Of an encrypted key; empty: it is not encrypted."""
    revoked: Path = Path()
    """List of revoked certificates (CRL) that TCP streams are checked with; none by default."""


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """Contents of the three files, checked to match each other."""

    certificate: bytes
    key: bytes
    authorities: bytes
    serving: ssl.SSLContext = field(compare=False, repr=False)
    """For the TCP streams that this node answers; it asks for no certificate yet."""
    dialling: ssl.SSLContext = field(compare=False, repr=False)
    """For the TCP streams that this node opens."""
    looking: ssl.SSLContext = field(compare=False, repr=False)
    """For handshakes that only look at a server's certificate; it knows no list of revoked ones."""
    scraped: ssl.SSLContext = field(compare=False, repr=False)
    """For the metrics listener; it never asks for a certificate."""


def load_tls(files: TlsFiles) -> TlsMaterial:
    """Read and check the files.

    Raises:
        ConfigError: A file cannot be read or is not PEM of its kind, everybody may read or change
            the key, the key does not match the certificate, or all ``own_names`` are missing. Each
            problem names its file, and its setting if there is no such file.
    """
    problems: list[str] = []
    contents: list[bytes] = []
    named = (
        ("tls.cert_file", files.certificate),
        ("tls.key_file", files.key),
        ("tls.ca_file", files.authorities),
    )
    for setting, path in named:
        try:
            contents.append(path.read_bytes())
        except OSError as error:
            problems.append(f"{setting} {path}: {error.strerror or error}")
    if problems:
        raise ConfigError(problems)
    if (mode := stat.S_IMODE(files.key.stat().st_mode)) & _OF_EVERYBODY:
        problems.append(
            f"{files.key}: a private key that everybody may read or change (mode {mode:04o}); "
            "chmod 600 it"
        )
    contexts = (
        _context(ssl.PROTOCOL_TLS_SERVER),
        _context(ssl.PROTOCOL_TLS_CLIENT),
        _context(ssl.PROTOCOL_TLS_CLIENT),
        _context(ssl.PROTOCOL_TLS_SERVER),
    )
    contexts[2].set_alpn_protocols(["h2"])
    problems += _load_into(contexts, files)
    if not problems and files.own_names and not _carries_own_name(files):
        problems.append(
            f"{files.certificate}: no subject alternative name {' or '.join(files.own_names)}, "
            "which this node's peers will look for"
        )
    if problems:
        raise ConfigError(problems)
    key = _plain_key(contents[1], files) if files.key_password else contents[1]
    return TlsMaterial(contents[0], key, contents[2], *contexts)


def _load_into(contexts: tuple[ssl.SSLContext, ...], files: TlsFiles) -> list[str]:
    """Load the files into the contexts of both ends; return what is wrong with them."""
    problems: list[str] = []
    # gRPC would accept any content and fail at the first handshake without a reason.
    if problem := pair_problem(contexts, files.certificate, files.key, files.key_password):
        is_unsaid = problem == encrypted_key(files.key)
        problems.append(problem + ("; set tls.key_password_file" if is_unsaid else ""))
    if problem := authorities_problem(contexts, files.authorities):
        problems.append(problem)
    if files.revoked != Path():
        try:
            for context in contexts[:2]:
                context.load_verify_locations(files.revoked)
                context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        except ssl.SSLError:
            problems.append(
                f"{files.revoked}: there is no intact PEM list of revoked certificates in it"
            )
        except OSError as error:
            problems.append(f"tls.crl_file {files.revoked}: {error.strerror or error}")
    return problems


def _plain_key(data: bytes, files: TlsFiles) -> bytes:
    """Return an encrypted key as gRPC takes it; it stays in memory.

    Raises:
        ConfigError: The library is missing, or the key cannot be decrypted.
    """
    try:
        from cryptography.hazmat.primitives import serialization as pem
    except ImportError as error:
        raise ConfigError(
            [
                "tls.key_password_file needs cryptography: install it with "
                "`pip install 'quorate[certs]'`"
            ]
        ) from error
    try:
        key = pem.load_pem_private_key(data, files.key_password.encode())
    except (ValueError, TypeError) as error:
        raise ConfigError([f"{files.key}: {error}"]) from error
    return key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())


def _context(protocol: int) -> ssl.SSLContext:
    """Return a context for both ends of TCP streams, which are all of this release or later."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if protocol == ssl.PROTOCOL_TLS_CLIENT:
        # A common name was not issued for this use (ADR 32).
        context.hostname_checks_common_name = False
    else:
        context.num_tickets = 0
    return context


class TlsIdentity:
    """This node's certificate, and credentials made from it. Any thread may use it.

    gRPC requests the server's certificate in its own threads, at every handshake.
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
        """Return the current contents of the files, or the last usable ones."""
        seen = _signature(self._files)
        if seen != self._seen:
            # Set first: an unusable replacement is reported once, not at every handshake.
            self._seen = seen
            try:
                self._material = load_tls(self._files)
            except ConfigError as error:
                _LOGGER.error("event=renewed_certificate_unusable error=%s", error)
        return self._material

    def server_credentials(self, *, asks_for_certificate: bool = True) -> grpc.ServerCredentials:
        """Return credentials for ``add_secure_port``; every handshake uses the newest files.

        With ``require_client_certificate``, the handshake refuses a client without a certificate
        of one of our authorities; not so for a port that does not ask for one.
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
            _configuration(in_use),
            renewed,
            self._require_client_certificate and asks_for_certificate,
        )

    def server_context(self) -> ssl.SSLContext:
        """Return the context for one connection to the port of TCP streams."""
        context = self.current().serving
        if self._require_client_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def metrics_context(self) -> ssl.SSLContext:
        """Return the context for the metrics listener; every handshake uses the newest files."""

        def renewed(session: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            session.context = self.current().scraped

        context = self.current().scraped
        context.sni_callback = renewed
        return context

    def client_context(self) -> ssl.SSLContext:
        """Return the context for one TCP stream that this node opens."""
        return self.current().dialling

    def looking_context(self) -> ssl.SSLContext:
        """Return the context for one look at the certificate of a gRPC server."""
        return self.current().looking

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Return fresh credentials for one gRPC connection."""
        material = self.current()
        return grpc.ssl_channel_credentials(
            root_certificates=material.authorities,
            private_key=material.key,
            certificate_chain=material.certificate,
        )


def _carries_own_name(files: TlsFiles) -> bool:
    return any(
        carries_name(
            files.certificate, files.key, files.authorities, name, password=files.key_password
        )
        for name in files.own_names
    )


def _configuration(material: TlsMaterial) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.certificate)], root_certificates=material.authorities
    )


def _signature(files: TlsFiles) -> tuple[FileSignature, ...]:
    """Return a value that changes when one of the files does."""
    paths = (files.certificate, files.key, files.authorities, files.revoked)
    return tuple(map(file_signature, paths))


def carries_name(
    certificate: Path, key: Path, authorities: Path, name: str, *, password: str = ""
) -> bool:
    """Whether a client that expects ``name`` would accept the names of this certificate.

    It tries an in-memory handshake. Other problems of the chain are ignored: peers may have
    authorities that this node no longer has.

    Raises:
        OSError: A file cannot be read; ``ssl.SSLError`` is one.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key, password=password)
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
