"""Mutual TLS with a temporary authority, and the errors for wrong files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.errors import ConfigError
from quorum.transport import security
from quorum.transport.security import TlsFiles, TlsIdentity, load_tls
from tests.support.certificates import authority, node
from tests.support.peer_harness import fetch, replica, run

pytestmark = [
    pytest.mark.usefixtures("carrier"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    authority(made, "ours")
    authority(made, "theirs")
    return made


def test_peers_with_certificates_of_one_authority_talk(folder: Path) -> None:
    """One turn over mutual TLS."""
    leader_tls = TlsIdentity(node(folder, "ours", "leader"))
    follower_tls = TlsIdentity(node(folder, "ours", "follower"))

    async def scenario() -> None:
        async with replica(1, tls=leader_tls) as leader, replica(2, tls=follower_tls) as follower:
            leader.echo()
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: bool(follower.handler.received))
            assert [sender for sender, _ in leader.handler.received] == [2]
            assert [sender for sender, _ in follower.handler.received] == [1]
            assert follower.handler.failed == follower.handler.refused == []

    run(scenario())


@pytest.mark.parametrize("stranger", ["other authority", "plain text"])
def test_strangers_are_refused_and_no_peer_counts_as_dead(folder: Path, stranger: str) -> None:
    """A certificate of another authority, and none at all: requests fail, no refusal."""
    leader_tls = TlsIdentity(node(folder, "ours", "leader2"))
    other = None
    if stranger == "other authority":
        files = node(folder, "theirs", "stranger")
        # It trusts our authority, so that only its own certificate is the obstacle.
        other = TlsIdentity(TlsFiles(files.certificate, files.key, folder / "ours.pem"))

    async def scenario() -> None:
        async with replica(1, tls=leader_tls) as leader, replica(2, tls=other) as follower:
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
            assert leader.handler.received == []
            assert follower.handler.refused == []

    run(scenario())


def test_renewed_files_are_used_and_broken_ones_are_not(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Replace the files, then break them: the newest usable certificate stays, one complaint."""
    first, second = node(folder, "ours", "first"), node(folder, "ours", "second")
    identity = TlsIdentity(first)
    old = identity.current()
    for part in ("certificate", "key"):
        getattr(first, part).write_bytes(getattr(second, part).read_bytes())
    renewed = identity.current()
    assert renewed != old
    first.key.write_bytes(b"broken")
    assert identity.current() == renewed
    assert identity.current() == renewed
    assert len(caplog.records) == 1
    assert str(first.key) in caplog.text


def test_grpc_is_given_a_certificate_only_when_it_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC 1.85.1 crashes when it replaces its context under concurrent handshakes.

    So each handshake must get "unchanged" (None), except the one after a renewal.
    """
    asked: list[Callable[[], object]] = []
    monkeypatch.setattr(
        security.grpc, "dynamic_ssl_server_credentials", lambda _, ask, __: asked.append(ask)
    )
    first, second = node(folder, "ours", "before"), node(folder, "ours", "after")
    identity = TlsIdentity(first)
    identity.server_credentials()
    (ask,) = asked
    assert [ask(), ask()] == [None, None]
    # Someone else having looked already must not hide the renewal from the listener.
    for part in ("certificate", "key"):
        getattr(first, part).write_bytes(getattr(second, part).read_bytes())
    identity.current()
    assert ask() is not None
    assert ask() is None


def test_every_problem_names_its_file(folder: Path, tmp_path: Path) -> None:
    """Missing files, a key of another certificate, an empty bundle."""
    good, other = node(folder, "ours", "good"), node(folder, "ours", "another")
    missing = TlsFiles(tmp_path / "a.pem", tmp_path / "b.key", good.authorities)
    with pytest.raises(ConfigError) as caught:
        load_tls(missing)
    assert list(caught.value.problems) == [
        f"tls.cert_file {missing.certificate}: No such file or directory",
        f"tls.key_file {missing.key}: No such file or directory",
    ]
    with pytest.raises(ConfigError, match=r"another\.key: it is not the key of .*good\.pem$"):
        load_tls(TlsFiles(good.certificate, other.key, good.authorities))
    for mode in (0o644, 0o602):
        good.key.chmod(mode)
        with pytest.raises(ConfigError, match=rf"good\.key: .* \(mode 0{mode:o}\); chmod 600 it"):
            load_tls(good)
    good.key.chmod(0o640)
    load_tls(good)
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    with pytest.raises(ConfigError, match=r"empty\.pem: there is no PEM certificate in it"):
        load_tls(TlsFiles(good.certificate, good.key, empty))
