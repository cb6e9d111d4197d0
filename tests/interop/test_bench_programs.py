"""The load programs of the benchmarks in Go pass their own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "bench" / "peers" / "programs"


def test_a_watcher_begins_again_when_the_log_was_trimmed(tmp_path: Path) -> None:
    """Goal: a trimmed log ends no run. Method: `go test` with a node that trims."""
    if shutil.which("go") is None:
        pytest.skip("needs Go")
    if not (ROOT / ".venv/proto-toolchain/bin/python").exists():
        pytest.skip("needs the compiler of protos: bash .ci/proto --check")
    modules = ["google.golang.org/grpc", "google.golang.org/protobuf"]
    download = subprocess.run(
        ["go", "mod", "download", *modules],
        cwd=PROGRAMS,
        capture_output=True,
        text=True,
        check=False,
    )
    if download.returncode != 0:
        pytest.skip(f"needs modules of Go that cannot be loaded: {download.stderr.strip()[:200]}")
    done = subprocess.run(
        [ROOT / "bench/peers/install", "test"],
        env={**os.environ, "QUORATE_BENCH_PEERS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok") == 2
