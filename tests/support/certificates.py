"""Throw-away authorities and certificates, made by openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from quorum.transport.security import TlsFiles

NO_NAMES: Final = "none"
_NEW_KEY: Final = (
    "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
)  # fmt: skip


def openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True)


def authority(folder: Path, name: str) -> Path:
    """A self-signed authority."""
    openssl(
        "req", "-x509", *_NEW_KEY, f"{name}.key", "-out", f"{name}.pem", "-days", "2",
        "-subj", f"/CN={name}",
        cwd=folder,
    )  # fmt: skip
    return folder / f"{name}.pem"


def caller(folder: Path, issuer: str, name: str, *alternative_names: str) -> TlsFiles:
    """Return a caller's certificate that has these names only (``DNS:...``)."""
    return _signed(folder, issuer, name, alternative_names)


def node(folder: Path, issuer: str, name: str, *alternative_names: str) -> TlsFiles:
    """Return a certificate signed by ``issuer`` with the common name ``name``.

    It names the loopback address and the given names (``DNS:...``); ``NO_NAMES`` leaves out both.
    """
    names = () if alternative_names == (NO_NAMES,) else ("IP:127.0.0.1", *alternative_names)
    return _signed(folder, issuer, name, names)


def _signed(folder: Path, issuer: str, name: str, names: tuple[str, ...]) -> TlsFiles:
    openssl(
        "req", *_NEW_KEY, f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", cwd=folder
    )
    (folder / "names.ext").write_text(f"subjectAltName={','.join(names)}\n" if names else "")
    openssl(
        "x509", "-req", "-in", f"{name}.csr", "-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key",
        "-CAcreateserial", "-days", "2", "-extfile", "names.ext", "-out", f"{name}.pem",
        cwd=folder,
    )  # fmt: skip
    return TlsFiles(folder / f"{name}.pem", folder / f"{name}.key", folder / f"{issuer}.pem")
