"""Named clusters of one user: how to reach each, in a file that only the user may read.

The file ``contexts.json`` is in the folder ``quorate`` of ``XDG_CONFIG_HOME``. It holds addresses
and paths, no keys and no passwords.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from quorate.cli.did_you_mean import did_you_mean
from quorate.cli.exits import CliError, Exit

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Context:
    """How one cluster is reached; what is None is not said."""

    bootstrap: tuple[str, ...] = ()
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    timeout_s: float | None = None
    sasl_user: str | None = None
    sasl_password_file: str | None = None
    sasl_token_file: str | None = None


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts, and the name of the one in use; empty if none is."""

    current: str = ""
    by_name: Mapping[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        """Return a context.

        Raises:
            CliError: NOT_FOUND, with a name that is near.
        """
        if name not in self.by_name:
            raise CliError(
                f"no such context: {name}",
                hint=did_you_mean(name, self.by_name) or "`quorate context list` shows all",
                code=Exit.NOT_FOUND,
            )
        return self.by_name[name]


def contexts_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the contexts are; the file need not exist."""
    folder = environment.get("XDG_CONFIG_HOME") or ""
    # The XDG specification ignores relative paths.
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "quorate" / "contexts.json"


def load_contexts(path: Path) -> Contexts:
    """Read the file; without one there are no contexts.

    Raises:
        CliError: USAGE; it cannot be read or understood.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']} is not known")
        found = {
            name: Context(**{**fields, "bootstrap": tuple(fields["bootstrap"])})
            for name, fields in document["contexts"].items()
        }
        return Contexts(document["current"], found)
    except (FileNotFoundError, NotADirectoryError):
        return Contexts()
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", code=Exit.USAGE) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CliError(
            f"{path}: no file of contexts: {error}",
            hint="move it aside, and add the contexts again",
            code=Exit.USAGE,
        ) from error


def save_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file at once and as a whole; it has mode 0600, a new folder 0700.

    Raises:
        CliError: FAILED; it cannot be written.
    """
    document = {
        "version": _VERSION,
        "current": contexts.current,
        "contexts": {name: asdict(each) for name, each in sorted(contexts.by_name.items())},
    }
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A temporary file has mode 0600.
        descriptor, name = tempfile.mkstemp(prefix=".contexts-", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
        Path(name).replace(path)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error
