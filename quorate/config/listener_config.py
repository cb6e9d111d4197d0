"""``listeners.*``: where a node listens, and which addresses it advertises."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.config.addresses import PORT_MAX, WILDCARD_HOSTS, address_problems, parse_address
from quorum.setting import Range, out_of_range, setting

_LISTENERS = (
    "client", "peer", "sasl", "advertised_client", "advertised_peer", "advertised_sasl", "peer_tcp"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Addresses to listen on, and addresses to advertise. All ``host:port``; port 0 picks one."""

    client: str = setting("127.0.0.1:9190", "host:port for clients.", kafka="listeners")
    peer: str = setting(
        "", "host:port for replicas; empty: the client port serves both.",
        kafka="controller.listener.names",
    )  # fmt: skip
    sasl: str = setting(
        "",
        "host:port for clients that prove a password or show a token, over TLS without a "
        "certificate; needs security.mode bound.",
        kafka="listeners",
    )
    advertised_sasl: str = setting(
        "", "host:port advertised to such clients.", kafka="advertised.listeners"
    )
    advertised_client: str = setting(
        "", "host:port advertised to clients.", kafka="advertised.listeners"
    )
    advertised_peer: str = setting(
        "", "host:port advertised to replicas.", kafka="advertised.listeners"
    )
    peer_tcp: str = setting(
        "",
        "host:port for peer streams over TCP, which two nodes use if both have one; empty: over "
        "gRPC.",
        kafka="controller.listener.names",
    )
    advertised_peer_tcp_port: int = setting(
        0,
        "Port of peer_tcp as replicas reach it, on their peer address's host; 0: its own port.",
        Range(0, PORT_MAX),
        kafka="advertised.listeners",
    )

    @property
    def peer_address(self) -> str:
        """Where peers are listened for."""
        return self.peer or self.client

    @property
    def reached_by_clients_at(self) -> str:
        """The address advertised to clients."""
        return self.advertised_client or self.client

    @property
    def reached_by_sasl_clients_at(self) -> str:
        """The address advertised to clients without a certificate; empty without a listener."""
        return self.sasl and (self.advertised_sasl or self.sasl)

    @property
    def reached_by_peers_at(self) -> str:
        """The address advertised to peers."""
        if self.advertised_peer:
            return self.advertised_peer
        return self.peer or self.reached_by_clients_at

    @property
    def tcp_port(self) -> int:
        """The port for TCP streams that is advertised to peers; 0 without one."""
        if not self.peer_tcp:
            return 0
        return self.advertised_peer_tcp_port or parse_address(self.peer_tcp)[1]

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = out_of_range(self, "listeners.")
        if self.peer_tcp and not address_problems("", self.peer_tcp) and not self.tcp_port:
            found.append("listeners.peer_tcp must name a port, because replicas are told it")
        for key in _LISTENERS:
            text = getattr(self, key)
            if text or key == "client":
                found += address_problems(f"listeners.{key}", text)
        for audience, text in (
            ("client", self.reached_by_clients_at),
            ("peer", self.reached_by_peers_at),
            ("sasl", self.reached_by_sasl_clients_at),
        ):
            if text and not address_problems("", text) and parse_address(text)[0] in WILDCARD_HOSTS:
                found.append(
                    f"listeners.advertised_{audience} must be set, because nobody can reach {text}"
                )
        return found
