"""Asks a node for its metrics as Prometheus does that the operator sets up by a ServiceMonitor."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

SECONDS_MAX = 10.0
METRIC = "quorate_raft_leader_id"
"""Every node has it."""


@dataclass(frozen=True, slots=True)
class Scraper:
    """One endpoint of a ServiceMonitor. Without ``authorities`` nothing is encrypted."""

    path: str
    port: int
    token: str
    authorities: str
    server_name: str

    def scrape(self, address: str) -> tuple[int, str]:
        """Return the status and the text.

        Raises:
            OSError, HTTPException: No answer, or the certificate is not of a node.
        """
        plain = socket.create_connection((address, self.port), SECONDS_MAX)
        connection = http.client.HTTPConnection(address, self.port)
        connection.sock = plain
        if self.authorities:
            context = ssl.create_default_context(cadata=self.authorities)
            connection.sock = context.wrap_socket(plain, server_hostname=self.server_name)
        try:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            connection.request("GET", self.path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def scraper(objects: Sequence[Mapping[str, Any]], secrets: Path) -> Scraper:
    """The one that these objects describe, with what their Secrets have."""
    (monitor,) = (each["spec"] for each in objects if each["kind"] == "ServiceMonitor")
    (endpoint,) = monitor["endpoints"]
    labels = monitor["selector"]["matchLabels"].items()
    (service,) = (
        each["spec"]
        for each in objects
        if each["kind"] == "Service" and labels <= each["metadata"]["labels"].items()
    )
    ports = {each["name"]: each["port"] for each in service["ports"]}
    tls = endpoint.get("tlsConfig")
    assert (tls is not None) == (endpoint.get("scheme") == "https")

    def key(of: Mapping[str, str]) -> str:
        return (secrets / of["name"] / of["key"]).read_text()

    return Scraper(
        endpoint["path"],
        ports[endpoint["port"]],
        key(endpoint["authorization"]["credentials"]) if "authorization" in endpoint else "",
        "" if tls is None else key(tls["ca"]["secret"]),
        "" if tls is None else tls["serverName"],
    )


def scrapes(right: Scraper, address: str) -> dict[str, int]:
    """Return the status of each way to ask one node; 0 is no answer at all."""
    ways = {
        "as set up": right,
        "another token": replace(right, token=f"{right.token}x"),
        "no token": replace(right, token=""),
        "not encrypted": replace(right, authorities=""),
    }
    found = {}
    for name, way in ways.items():
        try:
            found[name], text = way.scrape(address)
        except (OSError, http.client.HTTPException):
            found[name], text = 0, ""
        assert (f"{METRIC} " in text) == (found[name] == HTTPStatus.OK), text[:500]
    return found
