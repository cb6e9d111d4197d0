"""The operator's machine: docs/operations/kubernetes.md as it is pasted there.

Its commands are those of ``quorate`` and of ``kubectl``, and certificates are in a folder of its
own. A Secret of the cluster is a folder below ``secrets``, with a file for each key.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from tests.integration.kubernetes.sandbox import ROOT

PAGE = ROOT / "docs/operations/kubernetes.md"
SECONDS_MAX = 120
ADMINISTRATOR = "admin.example"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.M | re.S)


class Workstation:
    """Runs what the page says in one folder. Two of them with the same folder are the same."""

    def __init__(self, folder: Path) -> None:
        self.secrets = folder / "secrets"
        self._home = folder / "workstation"
        self._tools = folder / "tools"

    def set_up(self) -> None:
        """Make the folders and the programs."""
        for each in (self.secrets, self._home, self._tools):
            each.mkdir()
        for name, module in (
            ("quorate", "quorate"), ("kubectl", "tests.integration.kubernetes.kubectl"),
        ):  # fmt: skip
            program = self._tools / name
            program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
            program.chmod(0o755)

    def certificate(self, name: str = ADMINISTRATOR) -> tuple[Path, Path, Path]:
        """Authorities, key and certificate of a caller. They are there after the first commands."""
        folder = self._home / "certs"
        return folder / "ca.pem", folder / f"{name}.key", folder / f"{name}.pem"

    def paste(self, script: str) -> None:
        """Run a script; every command in it has to succeed."""
        done = subprocess.run(
            ["bash", "-eu", "-c", script],
            cwd=self._home,
            env={
                **os.environ,
                "PATH": f"{self._tools}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "SECRETS": str(self.secrets),
            },
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"


def script(section: str) -> str:
    """The commands of a section that stand in a block of their own."""
    (found,) = (text for language, text in _blocks(section) if not language)
    return found


def page_values() -> dict[str, Any]:
    """The page's values.yaml, as it is before its reader fills it in."""
    (found,) = (text for language, text in _blocks("Install") if language == "yaml")
    values: dict[str, Any] = yaml.safe_load(found)
    return values


def _blocks(section: str) -> list[tuple[str, str]]:
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [(each[1], dedent(each[2])) for each in _BLOCK.findall(text)]
