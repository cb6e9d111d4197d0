"""The errors of this package."""

from __future__ import annotations


class CertificateFolderError(Exception):
    """The folder holds no authority, or a file of it cannot be used."""


class CertificateExistsError(Exception):
    """A file of that name is there already; nothing was written."""


class CertificateNameError(Exception):
    """A name that no certificate may carry, or that belongs to another role."""


class CertificateKeyModeError(Exception):
    """Everybody may read or change a key; nothing was made with it."""
