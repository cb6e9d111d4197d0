"""Which names the certificate of each role carries. Pure: roles follow from names (ADR 61)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quorate.certificates.errors import CertificateNameError

_DNS_NAME: Final = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
    r"(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*"
)
"""No wildcard: it would be every node's name (ADR 32)."""


class Kind(StrEnum):
    """The role that a certificate gives its holder."""

    VOTER = "voter"
    OBSERVER = "observer"
    OPERATOR = "operator"
    CLIENT = "client"

    @property
    def is_node(self) -> bool:
        """Whether nodes of the cluster use it."""
        return self in (Kind.VOTER, Kind.OBSERVER)


@dataclass(frozen=True, slots=True)
class NodeNames:
    """The settings ``tls.node_name`` and ``tls.observer_name`` of the cluster."""

    voter: str
    observer: str

    def of(self, kind: Kind, node_id: int) -> str:
        """Return the name that makes a process the node of this id."""
        return (self.voter if kind is Kind.VOTER else self.observer).replace("{id}", str(node_id))

    def is_of_node(self, name: str) -> bool:
        """Whether a certificate with this name would be some node's."""
        return any(_matches(template, name) for template in (self.voter, self.observer))


def checked_node_names(voter: str, observer: str) -> NodeNames:
    """Return the two templates.

    Raises:
        CertificateNameError: One has not exactly one ``{id}``, is no DNS name, or both are equal.
    """
    for template in (voter, observer):
        if template.count("{id}") != 1:
            raise CertificateNameError(f"{template!r} needs {{id}} once, for the node's id")
        _check_dns(template.replace("{id}", "0"))
    names = NodeNames(voter, observer)
    if _matches(voter, names.of(Kind.OBSERVER, 1)) or _matches(observer, names.of(Kind.VOTER, 1)):
        raise CertificateNameError("voters and observers need different names")
    return names


def node_names(names: NodeNames, kind: Kind, text: str, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the alternative names of a node: its own name first, then its hosts.

    Raises:
        CertificateNameError: ``text`` is no node id, or a host is no name or address or is the
            name of a node.
    """
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 31:
        raise CertificateNameError(f"{text!r} is no node id; a {kind} is named by its node.id")
    for host in hosts:
        _check_foreign(names, host)
    return (names.of(kind, int(text)), *hosts)


def caller_names(names: NodeNames, name: str, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the alternative names of a client or operator: ``name`` first, the principal.

    Raises:
        CertificateNameError: A name is no DNS name or address, or is the name of a node.
    """
    if is_address(name):
        raise CertificateNameError(f"{name} is an address; ACLs name a client, not its machine")
    for each in (name, *hosts):
        _check_foreign(names, each)
    return (name, *hosts)


def is_address(name: str) -> bool:
    """Whether this is an IP address and no DNS name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _check_foreign(names: NodeNames, name: str) -> None:
    if is_address(name):
        return
    _check_dns(name)
    if names.is_of_node(name):
        raise CertificateNameError(
            f"{name} is the name of a node; whoever has it could vote or fetch as that node"
        )


def _check_dns(name: str) -> None:
    if _DNS_NAME.fullmatch(name) is None:
        raise CertificateNameError(
            f"{name!r} is no DNS name; use letters, digits, dots and dashes, and no wildcard"
        )


def _matches(template: str, name: str) -> bool:
    before, _, after = template.lower().partition("{id}")
    pattern = re.escape(before) + "[0-9]+" + re.escape(after)
    return re.fullmatch(pattern, name.lower()) is not None
