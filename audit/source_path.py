"""The path that a Spark user names: of this machine, perhaps as a URI, and perhaps of an export."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from audit.errors import AuditError
from audit.export_files import ExportFolder

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:/", re.IGNORECASE)


def local_path(text: str) -> Path:
    """Return the path that a text names: itself, or what is behind ``file:``.

    Raises:
        AuditError: It is a URI of another file system.
    """
    if not _URI.match(text):
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise AuditError(
            f"{text}: only files of the machines are read, at the same path on every executor; "
            "mount or copy it, or use option endpoint"
        )
    return Path(unquote(parts.path))


def check_is_no_export(path: Path) -> None:
    """Check that what should be a log is no export.

    Raises:
        AuditError: It is.
    """
    if path.is_dir() and ExportFolder(path).ranges():
        raise AuditError(
            f"{path}: contains no log; it is an export, which register_views of audit.views opens"
        )
