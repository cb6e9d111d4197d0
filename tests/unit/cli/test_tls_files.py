"""Files of TLS that no connection can be made with: one line about the file, and no connection."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from quorate.cli.main import main
from tests.support import certificates


def damaged(text: str) -> str:
    """Return a PEM file that lacks a line, as after a copy that went wrong."""
    lines = text.splitlines(keepends=True)
    return "".join(lines[:2] + lines[3:])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    certificates.authority(folder, "ca")
    certificates.node(folder, "ca", "one")
    certificates.node(folder, "ca", "two")
    (folder / "text").write_text("[node]\n", encoding="utf-8")
    key = load_pem_private_key((folder / "one.key").read_bytes(), None)
    sealed = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a password")
    )
    (folder / "sealed.key").write_bytes(sealed)
    (folder / "open.key").write_bytes((folder / "one.key").read_bytes())
    (folder / "open.key").chmod(0o644)
    for name in ("pem", "key"):
        (folder / f"cut.{name}").write_text(damaged((folder / f"one.{name}").read_text()))
    return folder


@pytest.mark.parametrize(
    ("ca", "cert", "key", "said"),
    [
        ("nothing", None, None, "nothing: No such file or directory"),
        ("text", None, None, "there is no PEM certificate in it"),
        ("ca.pem", "one.pem", "two.key", "it is not the key of the certificate"),
        ("ca.pem", "text", "text", "--tls-cert "),
        ("ca.pem", "one.pem", "text", "text: there is no PEM private key in it"),
        ("cut.pem", None, None, "cut.pem: the PEM certificate in it is damaged; copy it again"),
        ("ca.pem", "cut.pem", "one.key", "--tls-cert "),
        ("ca.pem", "cut.pem", "one.key", "cut.pem: the PEM certificate in it is damaged; copy it"),
        ("ca.pem", "one.pem", "cut.key", "--tls-key "),
        ("ca.pem", "one.pem", "cut.key", "cut.key: the PEM private key in it is damaged; copy it"),
        ("ca.pem", "one.pem", "sealed.key", "the key is encrypted"),
        ("ca.pem", "one.pem", "open.key", "open.key: everybody may read or change it (mode 0644)"),
        ("ca.pem", "one.pem", None, "--tls-cert and --tls-key belong together"),
    ],
)
def test_each_is_one_line_about_the_file(
    folder: Path,
    ca: str,
    cert: str | None,
    key: str | None,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = {"--tls-ca": ca, "--tls-cert": cert, "--tls-key": key}
    options = [word for flag, name in files.items() if name for word in (flag, str(folder / name))]
    assert main(["topic", "list", "--bootstrap", "127.0.0.1:1", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err
    assert "pem lib" not in err.lower()


def test_files_that_fit_are_used(folder: Path) -> None:
    options = ["--tls-ca", "ca.pem", "--tls-cert", "one.pem", "--tls-key", "one.key"]
    words = [str(folder / each) if "." in each else each for each in options]
    assert main(["topic", "list", "--bootstrap", "127.0.0.1:1", *words]) == 7
