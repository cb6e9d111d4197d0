"""Files that hold one secret: a password, a token or a key."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

from quorum.errors import ConfigError

SECRET_BYTES_MAX: Final = 64 << 10
_OF_EVERYBODY: Final = stat.S_IROTH | stat.S_IWOTH
"""A group may read a secret: that is how secrets are mounted into containers."""


def read_secret(path: Path, what: str) -> str:
    """Return the one line of a file, without its end; ``what`` names the setting.

    Raises:
        ConfigError: It cannot be read, everybody may read or change it, or it is not one line of
            printable text.
    """
    try:
        with path.open("rb") as file:
            data = file.read(SECRET_BYTES_MAX + 1)
        problem = secret_mode_problem(path)
        text = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise ConfigError([f"{what} {path}: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{what} {path}: it is no text in UTF-8"]) from error
    if problem:
        raise ConfigError([f"{what} {problem}"])
    if not text or not text.isprintable() or len(data) > SECRET_BYTES_MAX:
        raise ConfigError([f"{what} {path}: it must hold one line of printable text"])
    return text


def secret_mode_problem(path: Path) -> str:
    """Return in words that everybody may read or change a file; empty if not.

    Raises:
        OSError: It cannot be looked at.
    """
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _OF_EVERYBODY or not stat.S_ISREG(status.st_mode):
        return ""
    return f"{path}: everybody may read or change it (mode {mode:04o}); chmod 600 it"
