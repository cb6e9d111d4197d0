"""Over mutual TLS the principal is the certificate's name, whatever the client sends."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import grpc
import pytest

from quorate.client import TOPIC, Client, UnavailableError
from tests.support.served_node import cluster, serving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True)


def certificate(folder: Path, name: str, alternative: str) -> tuple[bytes, bytes]:
    """Key and certificate of ``name``, signed by the folder's authority."""
    openssl("req", *NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr",
            "-subj", f"/CN={name}", cwd=folder)  # fmt: skip
    (folder / "names.ext").write_text(f"subjectAltName={alternative}\n")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", "names.ext", "-out", f"{name}.pem",
            cwd=folder)  # fmt: skip
    return (folder / f"{name}.key").read_bytes(), (folder / f"{name}.pem").read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("client-tls")
    openssl("req", "-x509", *NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
            "-subj", "/CN=ca", cwd=made)  # fmt: skip
    return made


def test_the_certificate_names_the_principal(folder: Path) -> None:
    authority = (folder / "ca.pem").read_bytes()
    server_pair = certificate(folder, "server", "DNS:localhost")
    client_key, client_chain = certificate(folder, "client", "URI:spiffe://test/auditor")

    async def scenario() -> None:
        _, nodes = cluster(1)
        credentials = grpc.ssl_server_credentials([server_pair], authority, True)
        async with serving(*nodes, credentials=credentials):
            trusted = grpc.ssl_channel_credentials(authority, client_key, client_chain)
            async with Client(
                [nodes[0].address], client_id="somebody-else", credentials=trusted
            ) as client:
                await client.set_config(TOPIC, "t", "retention.ms", "1")
            stranger = grpc.ssl_channel_credentials(authority)
            async with Client([nodes[0].address], credentials=stranger) as client:
                with pytest.raises(UnavailableError):
                    await client.set_config(TOPIC, "t", "retention.ms", "2", timeout=0.3)
        context = nodes[0].contexts[-1]
        assert context.principal == "tls:spiffe://test/auditor"
        assert context.client_id == "somebody-else"

    asyncio.run(scenario())
