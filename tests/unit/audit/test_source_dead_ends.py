"""The option ``endpoint`` where no node answers, and files of its options that cannot be used.

Each is one line in the words of the options. What is definite is known within two seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from audit.errors import AuditError
from audit.source import ClusterMetadataSource
from quorum.transport.security import TlsFiles
from tests.support import certificates
from tests.support.dead_ends import (
    closed_port,
    foreign_http2_server,
    grpc_server,
    http_server,
    silent_server,
)

pytest.importorskip("pyspark")

SECONDS_MAX = 2.0
NO_CLIENT_PORT = "it is not the port for clients of a node"
Server = Callable[[], AbstractContextManager[str]]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    folder = tmp_path_factory.mktemp("tls")
    certificates.authority(folder, "ca")
    return certificates.node(folder, "ca", "node")


def problem(folder: Path, address: str, **options: Path) -> str:
    """Return what planning a query says about ``address``, in one line; and no copy is begun."""
    given = {name: str(path) for name, path in options.items()}
    source = ClusterMetadataSource({"path": str(folder / "copy"), "endpoint": address, **given})
    with pytest.raises(AuditError) as caught:
        source.reader(None)  # type: ignore[arg-type]
    said = str(caught.value)
    assert "\n" not in said
    assert "--" not in said
    return said


def soon(folder: Path, address: str, **options: Path) -> str:
    """As ``problem``, within two seconds: one of three tries, as others use the machine too."""
    for _ in range(3):
        began = time.perf_counter()
        said = problem(folder, address, **options)
        if time.perf_counter() - began < SECONDS_MAX:
            assert f"{address}: " in said
            return said
    pytest.fail("three times late")


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (lambda: nullcontext(closed_port()), "connection refused: nothing listens there"),
        (http_server, "an HTTP/1 server answers there"),
        (grpc_server, NO_CLIENT_PORT),
        (foreign_http2_server, NO_CLIENT_PORT),
    ],
    ids=["refused", "HTTP/1", "gRPC without clients", "HTTP/2"],
)
def test_an_address_that_no_node_answers_at(server: Server, words: str, tmp_path: Path) -> None:
    with server() as address:
        said = soon(tmp_path, address)
    assert words in said


def test_a_hint_names_the_option(tmp_path: Path) -> None:
    assert soon(tmp_path, closed_port()).endswith(
        "(start the node, or name another with option endpoint)"
    )
    assert not (tmp_path / "copy").exists()


def test_an_unknown_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no name server answers at all, there is no answer to tell."""
    monkeypatch.setattr("quorate.log_mirror.TIMEOUT_S", 0.5)
    said = problem(tmp_path, "no-such-host.invalid:9093")
    assert "no-such-host.invalid has no address (DNS: " in said or "no connection in time" in said


def test_tls_on_one_side_only(tls: TlsFiles, tmp_path: Path) -> None:
    with grpc_server() as address:
        said = soon(tmp_path, address, tlsCa=tls.authorities)
    assert said.endswith("the node uses no TLS, and this query does (leave out option tlsCa)")
    with grpc_server(tls) as address:
        said = soon(tmp_path, address)
    assert said.endswith("the node expects TLS, and this query uses none (give option tlsCa)")


def test_a_certificate_that_is_not_accepted(tls: TlsFiles, tmp_path: Path) -> None:
    with grpc_server(tls, asks_clients=True) as address:
        said = soon(tmp_path, address, tlsCa=tls.authorities)
        assert said.endswith("(give option tlsCert and option tlsKey)")
        said = soon(tmp_path, address, tlsCa=certificates.authority(tmp_path, "other"))
        assert "its certificate is not accepted: " in said


def test_a_node_that_is_late_has_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.log_mirror.TIMEOUT_S", 2.5)
    with silent_server() as address:
        began = time.perf_counter()
        said = problem(tmp_path, address)
    assert time.perf_counter() - began > 2.5
    assert "connected, but there is no answer" in said


def test_a_node_that_is_late_beside_one_that_refuses_has_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.log_mirror.TIMEOUT_S", 2.5)
    refused = closed_port()
    with silent_server() as address:
        began = time.perf_counter()
        said = problem(tmp_path, f"{refused},{address}")
    assert time.perf_counter() - began > 2.5
    assert f"{refused}: connection refused" in said
    assert f"{address}: connected, but there is no answer" in said


def test_a_key_that_everybody_may_read(tls: TlsFiles, tmp_path: Path) -> None:
    """As with the command line, by the same check, and before anything connects."""
    key = tmp_path / "open.key"
    key.write_bytes(tls.key.read_bytes())
    key.chmod(0o644)
    said = problem(
        tmp_path, closed_port(), tlsCa=tls.authorities, tlsCert=tls.certificate, tlsKey=key
    )
    assert said == f"option tlsKey {key}: everybody may read or change it (mode 0644); chmod 600 it"


@pytest.mark.parametrize("option", ["passwordFile", "tokenFile"])
def test_a_secret_that_everybody_may_read(option: str, tls: TlsFiles, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of all\n")
    secret.chmod(0o644)
    options = {option: secret, "tlsCa": tls.authorities}
    if option == "passwordFile":
        options["user"] = Path("alice")
    said = problem(tmp_path, closed_port(), **options)
    assert said == (
        f"option {option} {secret}: everybody may read or change it (mode 0644); chmod 600 it"
    )


def test_a_file_without_a_certificate(tls: TlsFiles, tmp_path: Path) -> None:
    said = problem(tmp_path, closed_port(), tlsCa=tls.key)
    assert said == f"option tlsCa {tls.key}: there is no PEM certificate in it"
