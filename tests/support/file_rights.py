"""Runs a command as an account that file modes concern: root may read and write everything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest


def run_without_rights(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``quorate`` with these arguments; of root, without the rights to pass over file modes."""
    without: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv, to give up the right to read every file")
        gone = "-dac_override,-dac_read_search"
        without = ["setpriv", f"--bounding-set={gone}", f"--inh-caps={gone}"]
    command = [*without, sys.executable, "-m", "quorate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
