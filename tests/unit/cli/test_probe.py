"""The health check of the image: it finds the node by the node's own configuration."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.cli.main import main
from tests.support.certificates import NO_NAMES, authority
from tests.support.certificates import node as certificate

FAILED = "not ready: leader: none is known"


class Node(http.server.BaseHTTPRequestHandler):
    """Is alive and not ready."""

    def do_GET(self) -> None:
        alive = self.path == "/livez"
        self.send_response(200 if alive else 503)
        self.end_headers()
        self.wfile.write(b"ok" if alive else FAILED.encode())

    def log_message(self, *_: object) -> None:
        """Keep the test quiet."""


@contextmanager
def node(context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[int]:
    """A metrics port; yields its number."""
    server = http.server.ThreadingHTTPServer((host, 0), Node)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "localhost", ""])
def test_the_node_s_own_port_is_asked(
    host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with node() as port:
        monkeypatch.setenv("QUORATE__METRICS__LISTEN", f"{host}:{port}")
        assert main(["probe"]) == Exit.OK
        assert "ok" in capsys.readouterr().out
        assert main(["probe", "--ready"]) == Exit.UNHEALTHY
        assert FAILED in capsys.readouterr().err


def test_a_node_with_tls_is_asked_with_tls(tmp_path: Path) -> None:
    """The settings come from the file; the certificate has another name than the address."""
    authority(tmp_path, "ca")
    files = certificate(tmp_path, "ca", "node-1.quorate.internal", NO_NAMES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    file = tmp_path / "node.toml"
    with node(context) as port:
        file.write_text(f'[metrics]\nlisten = "127.0.0.1:{port}"\ntls = true\n')
        assert main(["probe", "--config", str(file)]) == Exit.OK


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["probe", "--set", f"metrics.listen={address}"]) == Exit.UNREACHABLE
    assert f"{address} does not answer" in capsys.readouterr().err


def test_a_node_without_metrics_has_no_probe() -> None:
    assert main(["probe", "--set", "metrics.listen="]) == Exit.USAGE
