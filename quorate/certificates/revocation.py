"""The list of certificates that an authority has revoked (CRL)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from quorate.certificates.errors import CertificateFolderError


def signed_list(
    authority: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    former: x509.CertificateRevocationList | None,
    revoked: Iterable[x509.Certificate],
    *,
    days: int,
    now_ms: int,
) -> bytes:
    """Return a list, in PEM, with what ``former`` has and these; each certificate is in it once."""
    now = datetime.datetime.fromtimestamp(now_ms // 1000, datetime.UTC)
    entries = {each.serial_number: each for each in former or ()}
    for certificate in revoked:
        number = certificate.serial_number
        made = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now).build()
        entries.setdefault(number, made)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.subject)
        .last_update(now)
        .next_update(now + datetime.timedelta(days=days))
        .add_extension(x509.CRLNumber(_number(former) + 1), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    for entry in entries.values():
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def load_list(path: Path, authority: x509.Certificate) -> x509.CertificateRevocationList | None:
    """Return the list of a file, or None if there is no such file.

    Raises:
        CertificateFolderError: The file is no list, or another authority signed it.
    """
    try:
        found = x509.load_pem_x509_crl(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CertificateFolderError(f"{path} is no PEM list of revoked certificates") from error
    public = authority.public_key()
    if not isinstance(public, ec.EllipticCurvePublicKey) or not found.is_signature_valid(public):
        raise CertificateFolderError(f"{path} was signed by another authority")
    return found


def _number(former: x509.CertificateRevocationList | None) -> int:
    if former is None:
        return 0
    try:
        return former.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return 0
