"""Files that hold one secret: a password or a token."""

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
            mode = stat.S_IMODE(path.stat().st_mode)
        text = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise ConfigError([f"{what} {path}: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{what} {path}: it is no text in UTF-8"]) from error
    if mode & _OF_EVERYBODY and stat.S_ISREG(path.stat().st_mode):
        raise ConfigError(
            [f"{what} {path}: everybody may read or change it (mode {mode:04o}); chmod 600 it"]
        )
    if not text or not text.isprintable() or len(data) > SECRET_BYTES_MAX:
        raise ConfigError([f"{what} {path}: it must hold one line of printable text"])
    return text
