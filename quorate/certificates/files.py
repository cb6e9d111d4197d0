"""Writing certificates and keys: a key is never readable by others, not even for a moment."""

from __future__ import annotations

import os
from pathlib import Path

from quorate.certificates.errors import CertificateExistsError


def write_new(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file that must not exist yet, with ``mode`` from its creation on.

    Raises:
        CertificateExistsError: It exists.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError as error:
        raise CertificateExistsError(f"{path} exists") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, content: bytes, *, mode: int) -> None:
    """Replace a file at once: a node that reads it sees the old content or the new one."""
    made = path.with_name(f".{path.name}.part")
    made.unlink(missing_ok=True)
    write_new(made, content, mode=mode)
    made.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
