"""An authority in a folder: making it, issuing certificates, renewing and revoking them.

The folder has ``ca.pem``, ``ca.key`` and ``authority.json``, and for each holder NAME.pem and
NAME.key. ``former`` has what was replaced or revoked, as NAME-SERIAL.pem, and ``crl.pem`` lists the
revoked ones. Keys are of P-256, in PKCS 8, with mode 0600. Times are Unix milliseconds.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from quorate.certificates.errors import (
    CertificateExistsError,
    CertificateFolderError,
    CertificateKeyModeError,
    CertificateNameError,
)
from quorate.certificates.files import replace, write_new
from quorate.certificates.names import (
    Kind,
    NodeNames,
    caller_names,
    checked_node_names,
    is_address,
    node_names,
)
from quorate.certificates.revocation import load_list, signed_list
from quorate.config.secret_files import secret_mode_problem

AUTHORITY: Final = "ca"
_NAMES_FILE: Final = "authority.json"
_LIST_FILE: Final = "crl.pem"
_FORMER: Final = "former"
_OWN_NAMES: Final = frozenset({AUTHORITY, Path(_NAMES_FILE).stem, Path(_LIST_FILE).stem, _FORMER})
"""Names of the folder's own files and folders, which no holder may have."""
_OF_NODES: Final = (f"{Kind.VOTER}-", f"{Kind.OBSERVER}-")
_KEY_MODE: Final = 0o600
_CERTIFICATE_MODE: Final = 0o644
_FOLDER_MODE: Final = 0o700
_COMMON_NAME_CHARACTERS_MAX: Final = 64
"""Upper bound of X.520; the alternative names count, this one is for people."""
_CLOCK_SKEW: Final = datetime.timedelta(minutes=5)
"""A certificate is valid at once on machines whose clocks are this much behind."""
_CALLER: Final[tuple[x509.ObjectIdentifier, ...]] = (ExtendedKeyUsageOID.CLIENT_AUTH,)
_NODE: Final[tuple[x509.ObjectIdentifier, ...]] = (
    ExtendedKeyUsageOID.SERVER_AUTH,
    ExtendedKeyUsageOID.CLIENT_AUTH,
)


@dataclass(frozen=True, slots=True)
class Revoked:
    """The list, and the certificates that are in it now, without those that were before."""

    listed: Path
    certificates: tuple[Path, ...]
    names: tuple[str, ...]
    """Alternative names of the holder, the principal's first."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate in the folder. ``names`` are its alternative names, the principal's first."""

    certificate: Path
    key: Path
    names: tuple[str, ...]
    not_after_ms: int


def create_authority(folder: Path, names: NodeNames, *, title: str, days: int, now_ms: int) -> Path:
    """Make a self-signed authority, and return its certificate's path.

    Raises:
        CertificateExistsError: The folder has an authority.
        CertificateNameError: ``title`` is empty or too long.
    """
    if not 1 <= len(title) <= _COMMON_NAME_CHARACTERS_MAX:
        raise CertificateNameError(
            f"{title!r} has not 1 to {_COMMON_NAME_CHARACTERS_MAX} characters"
        )
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    certificate_path, key_path = _paths(folder, AUTHORITY)
    if certificate_path.exists():
        raise CertificateExistsError(f"{certificate_path} exists")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
    builder = (
        _builder(subject, subject, key.public_key(), days=days, now_ms=now_ms)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
    )
    write_new(key_path, _pem_of(key), mode=_KEY_MODE)
    templates = {"node_name": names.voter, "observer_name": names.observer}
    replace(folder / _NAMES_FILE, json.dumps(templates, indent=2).encode() + b"\n", mode=0o644)
    # Last: an authority is complete when its certificate is there.
    write_new(certificate_path, _pem(builder.sign(key, hashes.SHA256())), mode=_CERTIFICATE_MODE)
    return certificate_path


class Authority:
    """An authority that was made by ``create_authority``."""

    def __init__(self, folder: Path) -> None:
        """Read it.

        Raises:
            CertificateFolderError: The folder has none, or a file is damaged.
            CertificateKeyModeError: Everybody may read or change its key.
        """
        self._folder = folder
        certificate_path, key_path = _paths(folder, AUTHORITY)
        self._certificate = _load_certificate(certificate_path)
        self._key = _load_key(key_path)
        if self._key.public_key() != self._certificate.public_key():
            raise CertificateFolderError(f"{key_path} is not the key of {certificate_path}")
        self.names = _load_names(folder / _NAMES_FILE)

    def issue(
        self, kind: Kind, name: str, hosts: tuple[str, ...], *, days: int, now_ms: int
    ) -> Issued:
        """Make a key and a certificate for one holder.

        ``name`` is a node's id, or the principal of a client or operator without ``User:``.
        ``hosts`` are further names and addresses; a node lists those that others reach it by.

        Raises:
            CertificateExistsError: The holder has files already.
            CertificateNameError: A name cannot be used.
        """
        if kind.is_node:
            alternatives = node_names(self.names, kind, name, hosts)
            stem, extended = f"{kind}-{int(name)}", _NODE
        else:
            alternatives = caller_names(self.names, name, hosts)
            stem, extended = name, _CALLER
            # In any case of letters: on some file systems they name the same file.
            if stem.lower() in _OWN_NAMES or stem.lower().startswith(_OF_NODES):
                raise CertificateNameError(
                    f"{name} is taken by files of the authority and of nodes"
                )
        certificate_path, key_path = _paths(self._folder, stem)
        if certificate_path.exists():
            raise CertificateExistsError(f"{certificate_path} exists")
        key = ec.generate_private_key(ec.SECP256R1())
        common = alternatives[0][:_COMMON_NAME_CHARACTERS_MAX]
        builder = (
            self._leaf(
                x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)]),
                key.public_key(), days=days, now_ms=now_ms,
            )
            .add_extension(_alternatives(alternatives), critical=False)
            .add_extension(x509.ExtendedKeyUsage(extended), critical=False)
        )  # fmt: skip
        write_new(key_path, _pem_of(key), mode=_KEY_MODE)
        made = self._sign(builder)
        write_new(certificate_path, _pem(made), mode=_CERTIFICATE_MODE)
        return _issued(certificate_path, key_path, made)

    def renew(self, stem: str, *, days: int, now_ms: int) -> Issued:
        """Make a certificate for the same key and names, and put it in the old one's place.

        Only one file changes, so a node never reads a key and a certificate that do not match. The
        old certificate is kept in ``former``, because it is valid until its end and has to be
        revoked too if the key is lost.

        Raises:
            CertificateFolderError: There is no such certificate, another authority made it, or it
                does not belong to the key.
            CertificateKeyModeError: Everybody may read or change the key.
        """
        certificate_path, key_path = _paths(self._folder, stem)
        old = _load_certificate(certificate_path)
        if stem == AUTHORITY:
            raise CertificateFolderError(
                "an authority is not renewed: make another one in a new folder, let all nodes "
                "trust both, then issue new certificates"
            )
        if old.issuer != self._certificate.subject:
            raise CertificateFolderError(f"{certificate_path} was made by another authority")
        key = _load_key(key_path)
        if key.public_key() != old.public_key():
            raise CertificateFolderError(f"{key_path} is not the key of {certificate_path}")
        builder = self._leaf(old.subject, key.public_key(), days=days, now_ms=now_ms)
        for kept in (x509.SubjectAlternativeName, x509.ExtendedKeyUsage):
            extension = old.extensions.get_extension_for_class(kept)
            builder = builder.add_extension(extension.value, critical=extension.critical)
        made = self._sign(builder)
        self._keep(stem, old)
        replace(certificate_path, _pem(made), mode=_CERTIFICATE_MODE)
        return _issued(certificate_path, key_path, made)

    def revoke(self, stem: str, *, days: int, now_ms: int) -> Revoked:
        """Put a holder's certificates on the list, those from before a renewal too.

        The list counts as current for ``days``. Certificate and key move into ``former``, so that
        the holder can be issued another key. A repeat after a crash completes what was begun.

        Raises:
            CertificateFolderError: There is no such certificate, it is the authority's own, another
                authority made it, or the list is damaged.
        """
        if stem == AUTHORITY:
            raise CertificateFolderError(
                "an authority cannot revoke itself: make another one in a new folder"
            )
        certificate_path, key_path = _paths(self._folder, stem)
        former = sorted((self._folder / _FORMER).glob(f"{stem}-*.pem"))
        kept = [each for each in former if _stem_of(each) == stem]
        if certificate_path.exists():
            kept.append(self._keep(stem, _load_certificate(certificate_path)))
        if not kept:
            raise CertificateFolderError(f"{certificate_path}: there is no such certificate")
        certificates = {path: _load_certificate(path) for path in dict.fromkeys(kept)}
        if any(each.issuer != self._certificate.subject for each in certificates.values()):
            raise CertificateFolderError(f"{certificate_path} was made by another authority")
        newest = kept[-1]
        names = certificates[newest].extensions.get_extension_for_class(x509.SubjectAlternativeName)
        place = self._folder / _LIST_FILE
        listed = load_list(place, self._certificate)
        known = {each.serial_number for each in listed or ()}
        content = signed_list(
            self._certificate, self._key, listed, certificates.values(), days=days, now_ms=now_ms
        )
        replace(place, content, mode=_CERTIFICATE_MODE)
        if key_path.exists():
            key_path.replace(newest.with_suffix(".key"))
        certificate_path.unlink(missing_ok=True)
        return Revoked(
            place,
            tuple(path for path, each in certificates.items() if each.serial_number not in known),
            tuple(str(each.value) for each in names.value),
        )

    def _keep(self, stem: str, certificate: x509.Certificate) -> Path:
        """Store a copy in ``former``, and return its path."""
        place = self._folder / _FORMER / f"{stem}-{certificate.serial_number:040x}.pem"
        place.parent.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        replace(place, _pem(certificate), mode=_CERTIFICATE_MODE)
        return place

    def _leaf(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey, *, days: int, now_ms: int
    ) -> x509.CertificateBuilder:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            _builder(subject, self._certificate.subject, public, days=days, now_ms=now_ms)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(is_authority=False), critical=True)
            .add_extension(issuer, critical=False)
        )

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        return builder.sign(self._key, hashes.SHA256())


def make_authority(
    folder: Path, *, title: str, node_name: str, observer_name: str, days: int, now_ms: int
) -> Path:
    """Check the names, make the authority, and return its certificate's path.

    Raises:
        CertificateExistsError: The folder has an authority.
        CertificateNameError: A name cannot be used.
    """
    names = checked_node_names(node_name, observer_name)
    return create_authority(folder, names, title=title, days=days, now_ms=now_ms)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    *,
    days: int,
    now_ms: int,
) -> x509.CertificateBuilder:
    now = datetime.datetime.fromtimestamp(now_ms // 1000, datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(names: tuple[str, ...]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName(
        x509.IPAddress(ipaddress.ip_address(name)) if is_address(name) else x509.DNSName(name)
        for name in dict.fromkeys(names)
    )


def _issued(certificate_path: Path, key_path: Path, made: x509.Certificate) -> Issued:
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return Issued(
        certificate_path,
        key_path,
        tuple(str(each.value) for each in names),
        int(made.not_valid_after_utc.timestamp() * 1000),
    )


def _stem_of(former: Path) -> str:
    """The holder's name of a file in ``former``."""
    return former.stem.rpartition("-")[0]


def _paths(folder: Path, stem: str) -> tuple[Path, Path]:
    return folder / f"{stem}.pem", folder / f"{stem}.key"


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateFolderError(f"{path}: {error.strerror or error}") from error


def _load_certificate(path: Path) -> x509.Certificate:
    content = _read(path)
    try:
        return x509.load_pem_x509_certificate(content)
    except ValueError as error:
        raise CertificateFolderError(f"{path} is no PEM certificate") from error


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    content = _read(path)
    if problem := secret_mode_problem(path):
        raise CertificateKeyModeError(problem)
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateFolderError(f"{path} is no PEM private key without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateFolderError(f"{path} is no key of an elliptic curve")
    return key


def _load_names(path: Path) -> NodeNames:
    content = _read(path)
    try:
        document = json.loads(content)
        names = [_text_in(document, name) for name in ("node_name", "observer_name")]
        return checked_node_names(*names)
    except (ValueError, CertificateNameError) as error:
        raise CertificateFolderError(f"{path} does not name nodes: {error}") from error


def _text_in(document: object, name: str) -> str:
    text = document.get(name) if isinstance(document, dict) else None
    if not isinstance(text, str):
        raise ValueError(f"it is no object with a text {name}")
    return text
