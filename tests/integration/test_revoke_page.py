"""The commands of docs/operations/revoke.md make a list that a node takes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography import x509

from quorate.cli.main import main
from quorate.services.revoked_certificates import RevokedCertificates

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "revoke.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)

pytestmark = pytest.mark.integration


def test_the_list_of_the_page_revokes_the_certificate_and_no_other(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, whose commands the page has")
    folder = tmp_path / "certs"
    assert main(["certs", "init", "--dir", str(folder)]) == 0
    for node in ("2", "3"):
        issue = ["certs", "issue", "voter", node, "--host", f"n{node}", "--dir", str(folder)]
        assert main(issue) == 0
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 2, "once, and for each certificate"
    for block in blocks:
        done = subprocess.run(
            ["sh", "-ec", block], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    listed = RevokedCertificates(folder / "crl.pem", folder / "ca.pem")
    for node, is_revoked in (("2", False), ("3", True)):
        made = x509.load_pem_x509_certificate((folder / f"voter-{node}.pem").read_bytes())
        assert listed.has(made.issuer.public_bytes(), made.serial_number) is is_revoked
