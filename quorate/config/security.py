"""``security.*``: how far callers are trusted, and who operates the cluster.

``insecure`` trusts every caller, so it is for one machine. ``tls`` encrypts, and trusts every
caller with a certificate. ``bound`` gives each caller a role by its certificate, and clients the
rights that ACLs in the log name.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from quorate.config.addresses import parse_address
from quorate.config.secret_files import read_secret
from quorate.config.sections import ListenerConfig, MetricsConfig, TlsConfig
from quorum.errors import ConfigError
from quorum.setting import HOUR_MS, Range, out_of_range, setting

INSECURE = "insecure"
TLS = "tls"
BOUND = "bound"
MODES = (INSECURE, TLS, BOUND)
JWT_ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""With a common key whoever verifies could sign as well, and ``none`` signs nothing."""


@dataclass(frozen=True, slots=True)
class SecurityConfig:
    """The security mode of a node, and what each mode asks of the other sections."""

    mode: str = setting(
        INSECURE,
        "insecure (loopback only, everybody is believed), tls (encrypted) or bound (roles by "
        "certificate).",
        kafka="listener.security.protocol.map",
    )
    unsafe_insecure_listeners: bool = setting(
        False, "Let mode insecure listen beyond loopback: whoever reaches a port may do everything."
    )
    operators: tuple[str, ...] = setting(
        (), "Principals (User:name) that may do everything in mode bound.", kafka="super.users"
    )
    allow_everyone_if_no_acl_found: bool = setting(
        False, "In mode bound, whether clients may do what no ACL is about.",
        kafka="allow.everyone.if.no.acl.found",
    )  # fmt: skip
    jwt_jwks_file: Path = setting(
        Path(), "Public keys (JWKS) that JSON Web Tokens are verified with; read again when it "
        "changes.", kafka="sasl.oauthbearer.jwks.endpoint.url",
    )  # fmt: skip
    jwt_issuer: str = setting(
        "", "Issuer that a token must name.", kafka="sasl.oauthbearer.expected.issuer"
    )
    jwt_audience: str = setting(
        "", "Audience that a token must name.", kafka="sasl.oauthbearer.expected.audience"
    )
    jwt_principal_claim: str = setting(
        "sub", "Claim that names the principal.", kafka="sasl.oauthbearer.sub.claim.name"
    )
    jwt_algorithms: tuple[str, ...] = setting(
        ("RS256", "PS256", "ES256", "EdDSA"), "Signatures that are accepted."
    )
    token_lifetime_ms: int = setting(
        HOUR_MS, "How long a client that proved its password may call before it proves it again.",
        Range(60_000, 24 * HOUR_MS), kafka="connections.max.reauth.ms",
    )  # fmt: skip
    failed_authentication_delay_ms: int = setting(
        500, "How long after its last message a refused authentication is answered.",
        Range(0, 10_000),
        kafka="connection.failed.authentication.delay.ms",
    )  # fmt: skip
    reflection: bool = setting(True, "Serve gRPC reflection, which describes the services.")
    channelz: bool = setting(
        False, "Serve channelz, which shows gRPC's connections; to operators only in mode bound. "
        "Needs the extra `channelz`.",
    )  # fmt: skip

    def problems(self, listeners: ListenerConfig, tls: TlsConfig) -> list[str]:
        """Every impossible setting, and what the other sections lack for this mode."""
        if self.mode not in MODES:
            return [f"security.mode must be one of {', '.join(MODES)}, not {self.mode!r}"]
        found = out_of_range(self, "security.")
        if self.mode == INSECURE:
            return found + self._of_insecure(listeners, tls)
        if listeners.sasl and self.mode != BOUND:
            found.append("listeners.sasl needs security.mode bound: only it knows users")
        found += self._of_tokens()
        found += [
            f"security.operators: {text!r} is not of the form User:name"
            for text in self.operators
            if not all(text.partition(":"))
        ]
        if not tls.is_enabled:
            found.append(
                f"security.mode {self.mode} needs tls.cert_file, tls.key_file, tls.ca_file"
            )
        if self.mode == BOUND and not (tls.node_name and tls.require_client_cert):
            found.append(
                "security.mode bound needs tls.node_name and tls.require_client_cert: roles follow "
                "from certificates"
            )
        return found

    def _of_tokens(self) -> list[str]:
        if self.jwt_jwks_file == Path():
            return []
        if self.mode != BOUND:
            return ["security.jwt_jwks_file needs security.mode bound: only it knows users"]
        named = {
            "jwt_issuer": self.jwt_issuer,
            "jwt_audience": self.jwt_audience,
            "jwt_principal_claim": self.jwt_principal_claim,
        }
        found = [
            f"security.{key} must be set with security.jwt_jwks_file"
            for key, text in named.items()
            if not text
        ]
        if unknown := sorted(set(self.jwt_algorithms) - JWT_ALGORITHMS):
            found.append(
                f"security.jwt_algorithms: {', '.join(unknown)} is not among "
                f"{', '.join(sorted(JWT_ALGORITHMS))}, which have public keys"
            )
        if not self.jwt_algorithms:
            found.append("security.jwt_algorithms must name one at least")
        return found

    def _of_insecure(self, listeners: ListenerConfig, tls: TlsConfig) -> list[str]:
        if listeners.sasl:
            return ["listeners.sasl needs security.mode bound: only it knows users"]
        if tls.is_enabled:
            return ["tls.cert_file has no effect in security.mode insecure; set tls or bound"]
        if self.unsafe_insecure_listeners:
            return []
        addresses = (
            ("client", listeners.client),
            ("peer", listeners.peer),
            ("peer_tcp", listeners.peer_tcp),
        )
        return [
            f"listeners.{name} is {text}, beyond loopback, where security.mode insecure lets "
            "anybody do everything: set security.mode to tls or bound, or "
            "security.unsafe_insecure_listeners to true"
            for name, text in addresses
            if text and not is_loopback(text)
        ]


def exposure_problems(security: SecurityConfig, metrics: MetricsConfig) -> list[str]:
    """Return what is wrong with metrics that a node without certificates shows to everybody."""
    is_insecure = security.mode == INSECURE and not security.unsafe_insecure_listeners
    if not is_insecure or not metrics.listen or is_loopback(metrics.listen):
        return []
    return [
        f"metrics.listen is {metrics.listen}, beyond loopback, where security.mode insecure shows "
        "metrics to anybody: set security.mode to tls or bound, or "
        "security.unsafe_insecure_listeners to true"
    ]


def metrics_problems(metrics: MetricsConfig, tls: TlsConfig) -> list[str]:
    """Return what the metrics listener lacks; a token never travels in plain text."""
    if metrics.tls and not tls.is_enabled:
        return ["metrics.tls needs tls.cert_file, tls.key_file, tls.ca_file"]
    is_secret = metrics.token_file != Path() and metrics.listen and not is_loopback(metrics.listen)
    if is_secret and not metrics.tls:
        return ["metrics.token_file needs metrics.tls beyond loopback: the token would be readable"]
    return []


def load_token(path: Path) -> str:
    """Return the bearer token in a file, without space around it; empty for no path.

    Raises:
        ConfigError: It cannot be read, everybody may read it, or it is not one printable word.
    """
    if path == Path():
        return ""
    text = read_secret(path, "metrics.token_file").strip()
    if len(text.split()) != 1 or not text.isascii():
        raise ConfigError([f"metrics.token_file {path}: it must hold one word in ASCII"])
    return text


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches ``host:port``.

    A name other than ``localhost`` counts as reachable. A text that is no address passes: its own
    section reports it.
    """
    try:
        host, _ = parse_address(address)
    except ValueError:
        return True
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
