"""The console is not open to others by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.console.binding import checked_binding
from quorum.errors import QuorumUsageError


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
    files = {"certificate": tmp_path / "c", "key": tmp_path / "k"}
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
