# ruff: noqa: INP001 - `import proto` belongs to proto-plus, so this folder is no package
"""The comments of the .proto files, which descriptors in Python do not have."""

from __future__ import annotations

import re
from pathlib import Path

PROTOS = Path(__file__).resolve().parent / "quorum" / "v1"


def comments_of(files: tuple[str, ...]) -> dict[str, str]:
    """Return the comment in front of each declaration, by its full name without the package."""
    found: dict[str, str] = {}
    for file in files:
        path: list[str] = []
        comment: list[str] = []
        for line in (PROTOS / f"{file}.proto").read_text("utf-8").splitlines():
            text = line.strip()
            if text.startswith("//"):
                comment.append(text.lstrip("/ "))
                continue
            if opened := re.match(r"(?:message|enum|oneof|service) (\w+) \{(\})?$", text):
                # The members of a oneof belong to the message around it.
                name = "" if text.startswith("oneof") else opened[1]
                found[_joined([*path, opened[1]])] = " ".join(comment)
                if not opened[2]:
                    path.append(name)
            elif text == "}":
                path.pop()
            elif member := re.match(r"(?:optional |repeated )?(?:\w+ )?(\w+) = -?\d+;", text):
                found[_joined([*path, member[1]])] = " ".join(comment)
            comment = []
    return found


def _joined(path: list[str]) -> str:
    return ".".join(each for each in path if each)
