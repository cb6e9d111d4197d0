"""The commands of docs/operations/revoke.md make a list that a node takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509

from quorate.cli.main import main
from quorate.services.revoked_certificates import RevokedCertificates

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "revoke.md"
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.M | re.S)

pytestmark = pytest.mark.integration


def test_the_steps_of_the_page_revoke_one_key_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    assert main(["certs", "init", "--dir", str(folder)]) == 0
    for node in ("2", "3"):
        issue = ["certs", "issue", "voter", node, "--host", f"n{node}", "--dir", str(folder)]
        assert main(issue) == 0
    stolen = x509.load_pem_x509_certificate((folder / "voter-3.pem").read_bytes())
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 2, "revoking, and another key"
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in blocks:
        done = subprocess.run(
            ["sh", "-ec", block],
            cwd=tmp_path,
            env={**os.environ, "PATH": programs},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    listed = RevokedCertificates(folder / "crl.pem", folder / "ca.pem")
    present = [
        x509.load_pem_x509_certificate((folder / f"voter-{node}.pem").read_bytes())
        for node in ("2", "3")
    ]
    for made, is_revoked in ((stolen, True), (present[0], False), (present[1], False)):
        assert listed.has(made.issuer.public_bytes(), made.serial_number) is is_revoked
