"""The addresses of a node's configuration: its own, and those to ask before it knows a voter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.client.listener_names import CLIENT_LISTENER, SASL_LISTENER
from quorate.config.addresses import CONTROLLER_LISTENER, parse_address
from quorate.config.server_config import ServerConfig
from quorum.types import Endpoint, NodeId

_FIRST_BOOTSTRAP_ID: Final = -2
_FIRST_RELAY_ID: Final = -500
"""Between the ids of bootstrap servers and the ids that the transport gives anonymous senders
(below -1000)."""


def own_endpoints(config: ServerConfig) -> tuple[Endpoint, ...]:
    """Where this node is reached: by peers, by clients if that is elsewhere, and between them by
    clients without a certificate.

    The first address is the peers' and the last one the clients', for nodes of every release.
    """
    listeners = config.listeners
    peer = Endpoint(CONTROLLER_LISTENER, *parse_address(listeners.reached_by_peers_at))
    client = Endpoint(CLIENT_LISTENER, *parse_address(listeners.reached_by_clients_at))
    if sasl := listeners.reached_by_sasl_clients_at:
        return peer, Endpoint(SASL_LISTENER, *parse_address(sasl)), client
    return (peer,) if peer.address == client.address else (peer, client)


def bootstrap_peers(config: ServerConfig) -> dict[NodeId, str]:
    """Return the bootstrap servers except this node, under placeholder ids."""
    return _numbered(config, config.bootstrap.servers, _FIRST_BOOTSTRAP_ID)


def relay_peers(config: ServerConfig) -> dict[NodeId, str]:
    """Return the relays to fetch from except this node, under placeholder ids."""
    return _numbered(config, config.relay.fetch_from, _FIRST_RELAY_ID)


def _numbered(config: ServerConfig, addresses: Sequence[str], first: NodeId) -> dict[NodeId, str]:
    own = config.listeners.reached_by_peers_at
    others = [text for text in addresses if text != own]
    return {first - place: text for place, text in enumerate(others)}
