"""Revoked certificates and encrypted keys, at a node that runs."""

from __future__ import annotations

import asyncio
import shutil
import stat
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives import serialization

from quorate.certificates.authority import Authority, make_authority
from quorate.certificates.names import Kind
from quorate.client import BROKER, Client
from quorate.server.process import _filesystem
from quorate.services.certificate_gate import CertificateGate
from quorate.services.revoked_certificates import RevokedCertificates
from quorate.services.shown_certificate import UNREADABLE, ShownCertificates
from quorum.errors import ConfigError
from quorum.transport.security import TlsFiles, TlsIdentity, load_tls
from quorum.v1 import metadata_pb2, metadata_pb2_grpc
from tests.support.bound_node import bound_node
from tests.support.certificates import authority, caller, node
from tests.support.revoked_list import SIGNED_MS as NOW_MS
from tests.support.revoked_list import write_list


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_authority(
        tmp_path, title="ours", node_name="n-{id}", observer_name="o-{id}", days=9999, now_ms=NOW_MS
    )
    return tmp_path


def issued(folder: Path, name: str) -> Path:
    made = Authority(folder).issue(Kind.CLIENT, name, (), days=9999, now_ms=NOW_MS)
    return made.certificate


def shown(certificate: Path) -> dict[str, list[bytes]]:
    return {"x509_pem_cert": [certificate.read_bytes()]}


def names(revoked: RevokedCertificates, certificate: Path) -> bool:
    found = ShownCertificates().of(shown(certificate))
    assert found is not None
    return revoked.has(found.issuer, found.number)


def test_a_list_is_read_again_and_an_unusable_one_is_not(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, lost = issued(folder, "good.test"), issued(folder, "lost.test")
    now = 0.0
    revoked = RevokedCertificates(write_list(folder), folder / "ca.pem", now_s=lambda: now)
    assert not names(revoked, lost)
    write_list(folder, lost)
    now = 2.0
    assert names(revoked, lost)
    assert not names(revoked, good)
    assert ShownCertificates().of({}) is None
    (folder / "crl.pem").write_text("nonsense")
    for seconds in (4.0, 6.0):
        now = seconds
        assert names(revoked, lost)
    assert caplog.text.count("event=crl_unusable") == 1


def test_a_list_of_a_stranger_is_refused(folder: Path, tmp_path_factory: Any) -> None:
    other = tmp_path_factory.mktemp("other")
    make_authority(
        other, title="ours", node_name="n-{id}", observer_name="o-{id}", days=9999, now_ms=NOW_MS
    )
    with pytest.raises(ConfigError, match="no authority of"):
        RevokedCertificates(write_list(folder, signer=other), folder / "ca.pem", now_s=float)
    empty = folder / "empty.pem"
    empty.write_text("")
    with pytest.raises(ConfigError, match="no PEM list"):
        RevokedCertificates(empty, folder / "ca.pem", now_s=float)


def test_a_damaged_list_is_named_in_words(folder: Path) -> None:
    made = write_list(folder)
    lines = made.read_text().splitlines(keepends=True)
    made.write_text("".join(lines[:2] + lines[3:]))
    with pytest.raises(ConfigError) as refused:
        RevokedCertificates(made, folder / "ca.pem", now_s=float)
    assert str(refused.value) == f"tls.crl_file {made}: a PEM list (X509 CRL) in it is damaged"


def encrypted(folder: Path, password: str) -> TlsFiles:
    made = Authority(folder).issue(Kind.VOTER, "1", ("127.0.0.1",), days=9999, now_ms=NOW_MS)
    key: Any = serialization.load_pem_private_key(made.key.read_bytes(), None)
    made.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"pencil"),
        )
    )
    return TlsFiles(made.certificate, made.key, folder / "ca.pem", ("n-1",), password)


def test_a_node_serves_with_an_encrypted_key(folder: Path) -> None:
    files = encrypted(folder, "pencil")
    assert "pencil" not in repr(files)

    async def run() -> None:
        identity = TlsIdentity(files, require_client_certificate=False)
        server = grpc.aio.server()
        port = server.add_secure_port("127.0.0.1:0", identity.server_credentials())
        await server.start()
        credentials = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes())
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
            await asyncio.wait_for(channel.channel_ready(), 20)
        await server.stop(None)

    asyncio.run(run())


@pytest.mark.parametrize("password", ["", "pen"])
def test_a_wrong_password_of_a_key_is_named(folder: Path, password: str) -> None:
    with pytest.raises(ConfigError, match=r"voter-1\.key") as refused:
        load_tls(encrypted(folder, password))
    hint = (
        "the password is not that of the key" if password else "the key is encrypted; set tls.key"
    )
    assert hint in str(refused.value)
    assert "_ssl.c" not in str(refused.value)


def test_a_file_system_of_anywhere_but_the_tests_is_refused() -> None:
    assert _filesystem("tests.integration.full_disk:FullDiskFileSystem") is not None
    with pytest.raises(ConfigError, match="test builds only"):
        _filesystem("quorum.log.filesystem:OsFileSystem")
    with pytest.raises(ConfigError, match="test builds only"):
        _filesystem("subprocess:Popen")


def gate_of(made: Any) -> CertificateGate:
    (gate,) = (each for each in made._listeners._wrappers if isinstance(each, CertificateGate))
    assert isinstance(gate, CertificateGate)
    return gate


def look_again(made: Any) -> None:
    revoked = gate_of(made).revoked
    assert revoked is not None
    revoked._file._looked_at -= 10


def credentials_of(files: TlsFiles) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        *(each.read_bytes() for each in (files.authorities, files.key, files.certificate))
    )


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_revoked_caller_is_refused_while_the_node_runs(tmp_path: Path) -> None:
    """And everything that the node has written is for its owner only."""
    authority(tmp_path, "ours")
    server = node(tmp_path, "ours", "n1", "DNS:node-1.quorum.test")
    lost, kept = (caller(tmp_path, "ours", name, f"DNS:{name}.test") for name in ("lost", "kept"))
    crl = write_list(tmp_path, stem="ours")

    async def check(address: str, files: TlsFiles) -> grpc.StatusCode:
        async with grpc.aio.secure_channel(address, credentials_of(files)) as channel:
            call = channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=20)
            return await call.code()

    async def run() -> None:
        async with bound_node(tmp_path, server, crl=crl) as (address, _, made):
            assert await check(address, lost) is grpc.StatusCode.OK
            write_list(tmp_path, lost.certificate, stem="ours")
            look_again(made)
            assert await check(address, lost) is grpc.StatusCode.UNAUTHENTICATED
            assert await check(address, kept) is grpc.StatusCode.OK

    asyncio.run(run())
    for place in (tmp_path / "n1", *(tmp_path / "n1").rglob("*")):
        mode = stat.S_IMODE(place.stat().st_mode)
        assert mode == (0o700 if place.is_dir() else 0o600), (place, oct(mode))


@pytest.mark.parametrize("cause", ["revoked", "expired"])
def test_open_streams_end_with_their_certificate(tmp_path: Path, cause: str) -> None:
    """A watch gets no further change, and a write stream takes no further command.

    A connection between nodes outlives its certificate, but not a revocation.
    """
    now_s = tmp_path.stat().st_mtime
    made_ms = int(now_s * 1000)
    make_authority(
        tmp_path, title="ours", node_name="node-{id}.quorum.test",
        observer_name="observer-{id}.quorum.test", days=999, now_ms=made_ms,
    )  # fmt: skip
    ours = Authority(tmp_path)

    def files(kind: Kind, name: str, days: int) -> TlsFiles:
        made = ours.issue(kind, name, ("127.0.0.1",), days=days, now_ms=made_ms)
        return TlsFiles(made.certificate, made.key, tmp_path / "ca.pem")

    server, peer = files(Kind.VOTER, "1", 300), files(Kind.VOTER, "2", 1)
    admin, lost = files(Kind.OPERATOR, "admin.test", 300), files(Kind.OPERATOR, "lost.test", 1)
    crl = write_list(tmp_path)

    async def run() -> None:
        operators = ("User:admin.test", "User:lost.test")
        async with (
            bound_node(tmp_path, server, crl=crl, operators=operators) as (address, _, made),
            Client([address], credentials=credentials_of(admin)) as client,
            grpc.aio.secure_channel(address, credentials_of(lost)) as channel,
            grpc.aio.secure_channel(address, credentials_of(peer)) as peers,
        ):
            await client.set_config(BROKER, "", "log.retention.ms", "1")
            stub = metadata_pb2_grpc.MetadataServiceStub(channel)
            watch, writes = stub.Watch(metadata_pb2.WatchRequest()), stub.WriteStream()
            assert (await watch.read()).state.is_last
            await writes.write(metadata_pb2.WriteStreamRequest(hello=metadata_pb2.WriterIdentity()))
            assert (await writes.read()).HasField("accepted")
            if cause == "revoked":
                write_list(tmp_path, lost.certificate, peer.certificate)
                look_again(made)
            else:
                gate_of(made)._wall_s = lambda: now_s + 2 * 86_400
            await client.set_config(BROKER, "", "log.retention.ms", "1234567")
            with pytest.raises(grpc.aio.AioRpcError, match=cause) as ended:
                await end_of(watch)
            assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
            await writes.write(metadata_pb2.WriteStreamRequest())
            with pytest.raises(grpc.aio.AioRpcError, match=cause):
                await asyncio.wait_for(writes.read(), 20)
            code = await peers.unary_unary("/quorum.v1.RaftService/Vote")(b"", timeout=20).code()
            assert (code is grpc.StatusCode.UNAUTHENTICATED) is (cause == "revoked"), code

    asyncio.run(run())


async def end_of(watch: Any) -> None:
    """Read a watch to its end; nothing that was written meanwhile may come."""
    while True:
        assert b"1234567" not in (await watch.read()).SerializeToString()


def test_a_certificate_that_the_library_refuses(folder: Path) -> None:
    """Without a list it is as good as TLS says; with one it cannot be compared, and is refused."""
    strange = ShownCertificates().of({"x509_pem_cert": [b"not what it seems"]})
    assert strange is UNREADABLE
    assert CertificateGate(None).problem(UNREADABLE, "/a/B") == ""
    revoked = RevokedCertificates(write_list(folder), folder / "ca.pem")
    assert CertificateGate(revoked).problem(UNREADABLE, "/a/B") == "unreadable"
