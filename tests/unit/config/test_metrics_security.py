"""The metrics listener: its token stays secret, and it uses a renewed certificate."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from metrics.http import Endpoint, HttpServer
from quorate.certificates.authority import Authority, make_authority
from quorate.certificates.names import Kind
from quorate.config.sections import MetricsConfig, TlsConfig
from quorate.config.security import load_token, metrics_problems
from quorum.errors import ConfigError
from quorum.transport.security import TlsFiles, TlsIdentity

WITH_TLS = TlsConfig(cert_file=Path("c"), key_file=Path("k"), ca_file=Path("a"))
NOW_MS = 1_780_000_000_000


def test_a_token_does_not_travel_in_plain_text() -> None:
    token = Path("token")
    assert not metrics_problems(MetricsConfig(token_file=token), TlsConfig())
    open_port = MetricsConfig(listen="0.0.0.0:9191", token_file=token)
    assert "metrics.tls" in metrics_problems(open_port, WITH_TLS)[0]
    secure = MetricsConfig(listen="0.0.0.0:9191", token_file=token, tls=True)
    assert not metrics_problems(secure, WITH_TLS)
    assert "needs tls.cert_file" in metrics_problems(secure, TlsConfig())[0]


def test_a_token_is_one_word_of_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert load_token(Path()) == ""
    with pytest.raises(ConfigError, match="No such file"):
        load_token(file)
    file.write_text("word\n")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        load_token(file)
    file.chmod(0o600)
    assert load_token(file) == "word"
    for wrong in ("", "\n", "two words", "é"):
        file.write_text(wrong, "utf-8")
        with pytest.raises(ConfigError, match=r"one word|one line"):
            load_token(file)


def test_a_scrape_over_tls_sees_the_renewed_certificate(tmp_path: Path) -> None:
    make_authority(
        tmp_path, title="ours", node_name="n-{id}", observer_name="o-{id}", days=9999, now_ms=NOW_MS
    )
    authority = Authority(tmp_path)
    made = authority.issue(Kind.VOTER, "1", ("127.0.0.1",), days=9999, now_ms=NOW_MS)
    identity = TlsIdentity(TlsFiles(made.certificate, made.key, tmp_path / "ca.pem"))
    trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))

    async def scrape(port: int, token: str) -> tuple[bytes, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.write(f"GET /metrics HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer, shown

    async def run() -> None:
        endpoint = Endpoint(CollectorRegistry(), live=[], ready=[], token="word")
        server = HttpServer(endpoint, host="127.0.0.1", port=0, tls=identity.metrics_context())
        await server.start()
        try:
            answer, first = await scrape(server.port, "word")
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            answer, again = await scrape(server.port, "other")
            assert answer.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
            assert b"\r\nWWW-Authenticate: Bearer\r\n" in answer
            authority.renew("voter-1", days=9999, now_ms=NOW_MS)
            _, renewed = await scrape(server.port, "word")
            assert first == again != renewed
        finally:
            await server.close()

    asyncio.run(run())
