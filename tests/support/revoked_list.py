"""A list of revoked certificates (CRL), signed by an authority in a folder."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

SIGNED_MS = 1_700_000_000_000


def write_list(
    folder: Path,
    *revoked: Path,
    signer: Path | None = None,
    stem: str = "ca",
    name: str = "crl.pem",
    days: int = 9,
) -> Path:
    """Replace the list ``name`` in ``folder`` by a rename.

    Its authority is ``stem`` in ``signer`` or ``folder``; it ends ``days`` after ``SIGNED_MS``.
    """
    key_file = (signer or folder) / f"{stem}.key"
    key: Any = serialization.load_pem_private_key(key_file.read_bytes(), None)
    issuer = x509.load_pem_x509_certificate((folder / f"{stem}.pem").read_bytes()).subject
    at = datetime.datetime.fromtimestamp(SIGNED_MS / 1000, datetime.UTC)
    builder = x509.CertificateRevocationListBuilder().issuer_name(issuer).last_update(at)
    builder = builder.next_update(at + datetime.timedelta(days=days))
    for each in revoked:
        number = x509.load_pem_x509_certificate(each.read_bytes()).serial_number
        entry = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(at).build()
        builder = builder.add_revoked_certificate(entry)
    signed = builder.sign(key, hashes.SHA256())
    new = folder / f"{name}.new"
    new.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    return new.replace(folder / name)
