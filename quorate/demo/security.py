"""A local cluster in ``security.mode = bound``: its authority, secrets, settings and credentials.

Certificates come from ``quorate certs``, as a user's would. Everything is below one folder of mode
0700: ``certs``, the password of the demo's user and the token of the metrics listeners.
"""

from __future__ import annotations

import functools
import os
import secrets
import ssl
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc

from quorate.demo.ports import LOOPBACK, free_ports

OPERATOR: Final = "admin.example"
"""Name in the certificate of the operator, which the demo's commands show."""
USER: Final = "demo"
"""The demo's programs prove a password as this user."""
_SECRET_BYTES: Final = 24
Run = Callable[..., str]
"""Runs ``quorate ARGUMENTS``; returns what it printed."""


class ClusterSecurity:
    """What a cluster needs to know whom it talks to, and what its callers show."""

    def __init__(self, folder: Path) -> None:
        """Write nothing yet; ``folder`` need not exist."""
        self.certs = folder / "certs"
        self.password_file = folder / "demo.password"
        self.token_file = folder / "metrics.token"
        self._folder = folder

    def make(self, run: Run) -> None:
        """Make the authority, the operator's certificate and the secrets."""
        self._folder.mkdir(mode=0o700, parents=True)
        run("certs", "init", "--dir", str(self.certs))
        run("certs", "issue", "--dir", str(self.certs), "operator", OPERATOR)
        for path in (self.password_file, self.token_file):
            write_secret(path, secrets.token_hex(_SECRET_BYTES))

    def issue(self, run: Run, node_id: int, *, is_voter: bool) -> None:
        """Make the certificate of a node, unless it has one."""
        if not self._certificate(_stem(node_id, is_voter=is_voter)).exists():
            kind = "voter" if is_voter else "observer"
            place = ("--dir", str(self.certs), "--host", LOOPBACK)
            run("certs", "issue", *place, kind, str(node_id))

    def settings(self, node_id: int, *, is_voter: bool) -> dict[str, object]:
        """Return what the configuration of a node has besides; its ``listeners.sasl`` is new."""
        stem = _stem(node_id, is_voter=is_voter)
        (port,) = free_ports(1)
        return {
            "listeners.sasl": f"{LOOPBACK}:{port}",
            "metrics.tls": True,
            "metrics.token_file": str(self.token_file),
            "tls.cert_file": str(self._certificate(stem)),
            "tls.key_file": str(self._key(stem)),
            "tls.ca_file": str(self.authorities),
            "tls.require_client_cert": True,
            "tls.node_name": "node-{id}.quorate.internal",
            "tls.observer_name": "observer-{id}.quorate.internal",
            "security.mode": "bound",
            "security.operators": [f"User:{OPERATOR}"],
        }

    @property
    def authorities(self) -> Path:
        """The authority's certificate."""
        return self.certs / "ca.pem"

    @property
    def operator_environment(self) -> dict[str, str]:
        """What makes commands connect as the operator."""
        return {
            "QUORATE_TLS_CA": str(self.authorities),
            "QUORATE_TLS_CERT": str(self._certificate(OPERATOR)),
            "QUORATE_TLS_KEY": str(self._key(OPERATOR)),
        }

    @property
    def user_options(self) -> tuple[str, ...]:
        """What makes a command connect as the user, at ``listeners.sasl``."""
        return (
            "--tls-ca", str(self.authorities),
            "--sasl-user", USER, "--sasl-password-file", str(self.password_file),
        )  # fmt: skip

    def user_arguments(self) -> dict[str, Any]:
        """Return what makes a ``Client`` connect as the user, at ``listeners.sasl``."""
        return {
            "credentials": grpc.ssl_channel_credentials(self.authorities.read_bytes()),
            "user": USER,
            "password": self.password_file.read_text(),
        }

    @functools.cached_property
    def metrics_context(self) -> ssl.SSLContext:
        """What a scraper trusts."""
        return ssl.create_default_context(cafile=str(self.authorities))

    def scrape(self, address: str) -> urllib.request.Request:
        """Return the request of a scraper that shows the token; ``address`` has the path too."""
        request = urllib.request.Request(f"https://{address}")
        request.add_header("Authorization", f"Bearer {self.token_file.read_text()}")
        return request

    def _certificate(self, stem: str) -> Path:
        return self.certs / f"{stem}.pem"

    def _key(self, stem: str) -> Path:
        return self.certs / f"{stem}.key"


def write_secret(path: Path, text: str) -> None:
    """Write a new file that only its owner can read.

    Raises:
        FileExistsError: There is one.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)


def _stem(node_id: int, *, is_voter: bool) -> str:
    return f"{'voter' if is_voter else 'observer'}-{node_id}"
