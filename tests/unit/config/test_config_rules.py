"""Rules of single sections, addresses, and the digest that nodes compare."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from quorate.config.addresses import parse_address
from quorate.config.sections import (
    ClusterConfig,
    ListenerConfig,
    MetricsConfig,
    NodeConfig,
    TlsConfig,
)
from quorate.config.server_config import ServerConfig
from quorate.config.voter_addresses import parse_voter
from quorum.errors import ConfigError
from quorum.types import ZERO_UUID, uuid_to_text

DIRECTORY = bytes(range(16))
VALID = ServerConfig(node=NodeConfig(id=1, data_dir=Path("data")))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("a:1", ("a", 1)),
        ("[::1]:65535", ("::1", 65535)),
        (":0", ("", 0)),
        ("10.0.0.1:80", ("10.0.0.1", 80)),
    ],
)
def test_addresses(text: str, parsed: tuple[str, int]) -> None:
    assert parse_address(text) == parsed


@pytest.mark.parametrize(
    "text", ["a", "a:", "a:x", "a:65536", "::1:80", "a b:1", "[::1]", "a:1:2", ""]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host:port|above"):
        parse_address(text)


def test_voters_with_and_without_a_directory() -> None:
    voter = parse_voter(f"3@[::1]:9190:{uuid_to_text(DIRECTORY)}")
    assert (voter.key.id, voter.key.directory_id) == (3, DIRECTORY)
    assert voter.endpoints[0].address == "[::1]:9190"
    assert parse_voter("0@host:1").key.directory_id == ZERO_UUID


@pytest.mark.parametrize(
    "text",
    ["host:1", "-1@host:1", "1@host", "1@0.0.0.0:1", "1@:1", "1@h:1:short", "1@h:1x", "x@h:1"],
)
def test_an_invalid_voter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="@"):
        parse_voter(text)


def test_the_cluster_digest_changes_with_every_setting() -> None:
    base = ClusterConfig()
    assert base.digest() == ClusterConfig().digest()
    assert len(base.digest()) == 16
    for field in fields(ClusterConfig):
        value = getattr(base, field.name)
        other = value + 1 if isinstance(value, int) else value + "x"
        assert replace(base, **{field.name: other}).digest() != base.digest()


def test_node_settings_do_not_touch_the_cluster_digest() -> None:
    moved = replace(VALID, node=NodeConfig(id=2, data_dir=Path("elsewhere")))
    assert moved.cluster.digest() == VALID.cluster.digest()


def test_a_valid_configuration_has_no_problems() -> None:
    VALID.validate()
    assert VALID.listeners.problems() == []


@pytest.mark.parametrize(
    ("listeners", "words"),
    [
        (ListenerConfig(client="0.0.0.0:9190"), "advertised_client must be set"),
        (ListenerConfig(client="a:1", peer="[::]:2"), "advertised_peer must be set"),
        (ListenerConfig(client=""), "listeners.client"),
        (ListenerConfig(client="a:1", peer="a:1"), "cannot both listen"),
        (ListenerConfig(client="a:1", sasl="a:1"), "listeners.sasl and listeners.client cannot"),
        (ListenerConfig(client="127.0.0.1:9191"), "cannot both listen"),
    ],
)
def test_listeners_that_cannot_work(listeners: ListenerConfig, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        replace(VALID, listeners=listeners).validate()


def test_one_port_may_serve_clients_and_peers() -> None:
    listeners = ListenerConfig(client="0.0.0.0:9190", advertised_client="n1:9190")
    assert listeners.problems() == []
    assert listeners.peer_address == "0.0.0.0:9190"
    assert listeners.reached_by_peers_at == "n1:9190"


def test_port_zero_never_clashes() -> None:
    config = replace(
        VALID,
        listeners=ListenerConfig(client="127.0.0.1:0"),
        metrics=MetricsConfig(listen="127.0.0.1:0"),
    )
    assert config._clashes() == []
    config.validate()
    # The same two on a port of their own do clash: the 0 is what lets them pass.
    fixed = replace(
        config,
        listeners=ListenerConfig(client="127.0.0.1:9400"),
        metrics=MetricsConfig(listen="127.0.0.1:9400"),
    )
    assert [each.split()[0] for each in fixed._clashes()] == ["metrics.listen"]


@pytest.mark.parametrize("text", ["module", "a.b:", ":C", "a b:C", "a:C.D"])
def test_a_filesystem_must_name_a_class(text: str) -> None:
    node = NodeConfig(id=1, data_dir=Path("d"), filesystem=text)
    assert "node.filesystem" in node.problems()[0]
    assert NodeConfig(id=1, data_dir=Path("d"), filesystem="a.b:C").problems() == []


TLS = TlsConfig(
    Path("a.pem"),
    Path("a.key"),
    Path("ca.pem"),
    require_client_cert=True,
    node_name="node-{id}.test",
)


@pytest.mark.parametrize(
    ("tls", "words"),
    [
        (replace(TLS, require_client_cert=False), "tls.node_name needs tls.require_client_cert"),
        (replace(TLS, node_name="node.test"), "tls.node_name: 'node.test' is no DNS name"),
    ],
)
def test_certificate_names_that_cannot_work(tls: TlsConfig, words: str) -> None:
    assert TLS.problems() == []
    assert any(words in problem for problem in tls.problems())


def test_the_port_of_tcp_streams_is_the_one_that_replicas_reach() -> None:
    """It is advertised in the hello, so it must be known before anything is bound."""
    assert ListenerConfig().tcp_port == 0
    assert ListenerConfig(peer_tcp="0.0.0.0:9191").tcp_port == 9191
    mapped = ListenerConfig(peer_tcp="127.0.0.1:0", advertised_peer_tcp_port=30_000)
    assert mapped.tcp_port == 30_000
    assert mapped.problems() == []
    (problem,) = ListenerConfig(peer_tcp="127.0.0.1:0").problems()
    assert problem.startswith("listeners.peer_tcp must name a port")
    assert ListenerConfig(peer_tcp="nonsense").problems() != []
