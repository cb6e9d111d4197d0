"""What each security mode asks of listeners and certificates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quorate.config.sections import ListenerConfig, MetricsConfig, NodeConfig, TlsConfig
from quorate.config.security import SecurityConfig, is_loopback
from quorate.config.server_config import ServerConfig
from quorum.errors import ConfigError

LOCAL = ServerConfig(node=NodeConfig(id=1, data_dir=Path("data")))
ANYWHERE = replace(
    LOCAL,
    listeners=ListenerConfig(client="0.0.0.0:9190", peer="n1:9192", advertised_client="n1:9190"),
)
NO_TLS = TlsConfig()
FILES = TlsConfig(Path("a.pem"), Path("a.key"), Path("ca.pem"))
NAMED = replace(FILES, require_client_cert=True, node_name="node-{id}.test")


def problems(config: ServerConfig, tls: TlsConfig = NO_TLS, **security: object) -> list[str]:
    return replace(config, tls=tls, security=SecurityConfig(**security)).problems()  # type: ignore[arg-type]


def test_without_certificates_only_loopback_is_listened_on() -> None:
    assert problems(LOCAL) == []
    found = problems(ANYWHERE)
    assert [each.split()[0] for each in found] == ["listeners.client", "listeners.peer"]
    assert all("security.unsafe_insecure_listeners" in each for each in found)
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0:9190, beyond loopback"):
        ANYWHERE.validate()


@pytest.mark.parametrize("listen", ["0.0.0.0:9191", "[::]:9191", "n1:9191"])
def test_without_certificates_metrics_are_on_loopback_too(listen: str) -> None:
    shown = replace(LOCAL, metrics=MetricsConfig(listen=listen))
    (found,) = problems(shown)
    assert found.startswith(f"metrics.listen is {listen}, beyond loopback")
    assert "security.unsafe_insecure_listeners" in found
    assert problems(shown, unsafe_insecure_listeners=True) == []
    assert problems(shown, FILES, mode="tls") == []
    for local in ("127.0.0.1:9191", "[::1]:9191", ""):
        assert problems(replace(LOCAL, metrics=MetricsConfig(listen=local))) == []


def test_the_unsafe_setting_lets_insecure_nodes_be_reached() -> None:
    assert problems(ANYWHERE, unsafe_insecure_listeners=True) == []


@pytest.mark.parametrize(
    ("mode", "tls", "words"),
    [
        ("insecure", FILES, "tls.cert_file has no effect in security.mode insecure"),
        ("tls", TlsConfig(), "security.mode tls needs tls.cert_file"),
        ("bound", TlsConfig(), "security.mode bound needs tls.cert_file"),
        ("bound", FILES, "security.mode bound needs tls.node_name and tls.require_client_cert"),
        (
            "tls",
            replace(FILES, observer_name="o-{id}.test"),
            "tls.observer_name needs tls.node_name",
        ),
        (
            "bound",
            replace(NAMED, observer_name="NODE-{id}.test"),
            "tls.observer_name and tls.node_name must differ",
        ),
        ("bound", replace(NAMED, observer_name="o.test"), "tls.observer_name: 'o.test' is no DNS"),
        ("open", TlsConfig(), "security.mode must be one of insecure, tls, bound, not 'open'"),
    ],
)
def test_what_a_mode_lacks(mode: str, tls: TlsConfig, words: str) -> None:
    assert any(words in each for each in problems(ANYWHERE, tls, mode=mode))


@pytest.mark.parametrize(("mode", "tls"), [("tls", FILES), ("tls", NAMED), ("bound", NAMED)])
def test_certificates_let_a_node_be_reached(mode: str, tls: TlsConfig) -> None:
    assert problems(ANYWHERE, tls, mode=mode) == []


def test_an_operator_is_written_as_in_an_acl() -> None:
    (found,) = problems(LOCAL, NAMED, mode="bound", operators=("admin",))
    assert found == "security.operators: 'admin' is not of the form User:name"


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("127.0.0.1:1", True), ("127.9.9.9:1", True), ("localhost:1", True), ("[::1]:1", True),
        ("0.0.0.0:1", False), ("[::]:1", False), (":1", False), ("10.0.0.1:1", False),
        ("n1:1", False), ("localhost.example:1", False), ("nowhere", True),
    ],
)  # fmt: skip
def test_which_addresses_are_loopback(address: str, *, is_local: bool) -> None:
    assert is_loopback(address) is is_local
