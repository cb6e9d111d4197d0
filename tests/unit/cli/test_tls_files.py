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
    return folder


@pytest.mark.parametrize(
    ("ca", "cert", "key", "said"),
    [
        ("nothing", None, None, "nothing: No such file or directory"),
        ("text", None, None, "there is no PEM certificate in it"),
        ("ca.pem", "one.pem", "two.key", "cannot be used together: key values mismatch"),
        ("ca.pem", "text", "text", "cannot be used together"),
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


def test_files_that_fit_are_used(folder: Path) -> None:
    options = ["--tls-ca", "ca.pem", "--tls-cert", "one.pem", "--tls-key", "one.key"]
    words = [str(folder / each) if "." in each else each for each in options]
    assert main(["topic", "list", "--bootstrap", "127.0.0.1:1", *words]) == 7
