"""The steps of docs/operations/secure-steps.md, as a reader pastes them into a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.demo.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/operations/secure-steps.md"
SECONDS_MAX = 400
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)

pytestmark = pytest.mark.integration


def test_the_steps_do_what_the_page_says(tmp_path: Path) -> None:
    """Every step succeeds, also those that look for a refusal; nothing is left running."""
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "quorate"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quorate "$@"\n')
    command.chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()
    port, sasl = free_ports(2)
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 7
    script = "\n".join(blocks).replace("127.0.0.1:9190", f"127.0.0.1:{port}")
    script = script.replace("127.0.0.1:9195", f"127.0.0.1:{sasl}")
    header = "set -eum\ntrap 'cat ./*.log >&2; kill %1 2>/dev/null || true' ERR\n"
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "-c", header + script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cause=acl what=ALTER_CONFIGS TOPIC other" in done.stdout
    assert "cause=acl what=DESCRIBE CLUSTER kafka-cluster" in done.stdout
    assert "event=stopped" in (folder / "server.log").read_text()
