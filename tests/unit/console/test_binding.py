"""The console is not open to others by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.console.binding import checked_binding
from quorum.errors import QuorumUsageError
from tests.support import certificates


def token(tmp_path: Path, text: str = "0123456789abcdef", mode: int = 0o600) -> Path:
    path = tmp_path / "token"
    path.write_text(text + "\n")
    path.chmod(mode)
    return path


@pytest.mark.parametrize("listen", ["127.0.0.1:9192", "localhost:9192", "[::1]:9192"])
def test_loopback_needs_nothing(listen: str) -> None:
    assert checked_binding(listen).host_names == ("localhost", "127.0.0.1", "::1")


@pytest.mark.parametrize("listen", ["0.0.0.0:9192", ":9192", "[::]:9192", "console:9192"])
def test_others_need_tls_and_a_token(listen: str, tmp_path: Path) -> None:
    made = certificates.node(tmp_path, certificates.authority(tmp_path, "ca").stem, "page")
    files = {"certificate": made.certificate, "key": made.key}
    shown = token(tmp_path)
    with pytest.raises(QuorumUsageError, match="--server-cert and --server-key and --token-file"):
        checked_binding(listen)
    with pytest.raises(QuorumUsageError, match="add --token-file"):
        checked_binding(listen, **files)
    with pytest.raises(QuorumUsageError, match="add --server-cert"):
        checked_binding(listen, token_file=shown)
    assert checked_binding(listen, **files, token_file=shown).token == b"0123456789abcdef"
    assert checked_binding(listen, is_unsafe_allowed=True).token == b""


def test_bad_options_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(QuorumUsageError, match="is not host:port"):
        checked_binding("9192")
    with pytest.raises(QuorumUsageError, match="belong together"):
        checked_binding("127.0.0.1:1", certificate=tmp_path)
    with pytest.raises(QuorumUsageError, match="at least 16"):
        checked_binding("127.0.0.1:1", token_file=token(tmp_path, "short"))
    with pytest.raises(QuorumUsageError, match="chmod 600"):
        checked_binding("127.0.0.1:1", token_file=token(tmp_path, mode=0o644))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    certificates.authority(made, "ca")
    for name in ("one", "two", "open"):
        certificates.node(made, "ca", name)
    (made / "open.key").chmod(0o644)
    certificates.openssl(
        "pkcs8", "-topk8", "-in", "one.key", "-out", "sealed.key", "-passout", "pass:secret",
        cwd=made,
    )  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("one.pem", "two.key", r"two\.key: it is not the key of the certificate .*one\.pem"),
        ("one.key", "one.pem", r"one\.key: there is no PEM certificate in it"),
        ("one.pem", "two.pem", r"two\.pem: there is no PEM private key in it"),
        ("one.pem", "sealed.key", r"sealed\.key: the key is encrypted"),
        ("one.pem", "none.key", r"none\.key: No such file or directory"),
        ("open.pem", "open.key", r"open\.key: everybody may read or change it \(mode 0644\)"),
    ],
)
def test_files_that_cannot_serve_the_page_are_named(
    folder: Path, certificate: str, key: str, said: str
) -> None:
    with pytest.raises(QuorumUsageError, match=said):
        checked_binding("127.0.0.1:1", certificate=folder / certificate, key=folder / key)
