"""The words of kubectl that docs/operations/kubernetes.md uses for Secrets; each is a folder.

``python -m tests.integration.kubernetes.kubectl ...`` with the folder of all Secrets in SECRETS.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(arguments: Sequence[str], secrets: Path) -> None:
    """Create a Secret from files, or change keys of one. Anything else is an error."""
    match list(arguments):
        case ["-n", _, "create", "secret", "generic", name, *options]:
            (secrets / name).mkdir()
            for each in options:
                kind, _, source = each.partition("=")
                assert kind == "--from-file", each
                _write(secrets / name, {Path(source).name: Path(source).read_bytes()})
        case ["-n", _, "patch", "secret", name, "--patch", text]:
            data = json.loads(text)["data"]
            decoded = {key: base64.b64decode(each, validate=True) for key, each in data.items()}
            _write(secrets / name, decoded)
        case _:
            raise SystemExit(f"kubectl: unknown words: {' '.join(arguments)}")


def _write(secret: Path, data: Mapping[str, bytes]) -> None:
    for key, content in data.items():
        (secret / key).write_bytes(content)


if __name__ == "__main__":
    run(sys.argv[1:], Path(os.environ["SECRETS"]))
