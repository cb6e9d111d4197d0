"""The container image as deploy/Dockerfile describes it: its last stage, read as text."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def base_images() -> list[str]:
    """The base image of each stage."""
    return [words[1].split()[0] for words in instructions() if words[0] == "FROM"]


def image_environment(dockerfile: Path = DOCKERFILE) -> dict[str, str]:
    """What ``ENV`` sets in the image, without PATH."""
    text = " ".join(words[1] for words in _last_stage("ENV", dockerfile))
    found = dict(re.findall(r"(\w+)=(\S+)", text))
    del found["PATH"]
    return found


def image_user() -> tuple[int, int]:
    """User and group id of the image; not a name.

    Raises:
        ValueError: It is a name.
    """
    user, _, group = _last_stage("USER")[-1][1].partition(":")
    return int(user), int(group)


def exposed_ports() -> set[int]:
    return {int(port) for words in _last_stage("EXPOSE") for port in words[1].split()}


def healthcheck() -> list[str]:
    """The command of the health check."""
    text = _last_stage("HEALTHCHECK")[-1][1]
    found: list[str] = json.loads(text[text.index("CMD") + len("CMD") :])
    return found


def default_command(dockerfile: Path = DOCKERFILE) -> list[str]:
    """Entry point and arguments of a container that is given neither."""
    parts = [*_last_stage("ENTRYPOINT", dockerfile), *_last_stage("CMD", dockerfile)]
    return [word for words in parts for word in json.loads(words[1])]


def _last_stage(name: str, dockerfile: Path = DOCKERFILE) -> list[list[str]]:
    found: list[list[str]] = []
    for words in instructions(dockerfile):
        if words[0] == "FROM":
            found = []
        elif words[0] == name:
            found.append(words)
    return found


def instructions(dockerfile: Path = DOCKERFILE) -> list[list[str]]:
    """Each instruction as its name and the rest of its lines."""
    lines = [
        line
        for line in dockerfile.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in joined.splitlines()]
