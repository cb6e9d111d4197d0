"""Addresses as people write them: ``host:port`` and ``id@host:port:directory``."""

from __future__ import annotations

import re

from quorum.types import ZERO_UUID, Endpoint, ReplicaKey, Voter, uuid_from_text

CONTROLLER_LISTENER = "CONTROLLER"
"""Name of the listener that voters are reached on."""
WILDCARD_HOSTS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, not bound
PORT_MAX = 65_535

_ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<name>[^:\[\]@\s]*)):(?P<port>\d{1,5})")


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of ``host:port``; IPv6 hosts stand in brackets, an empty host is allowed.

    Raises:
        ValueError: If it is not of that form, or the port is above 65535.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not host:port")
    port = int(match["port"])
    if port > PORT_MAX:
        raise ValueError(f"{text!r}: port {port} is above {PORT_MAX}")
    return match["v6"] if match["v6"] is not None else match["name"], port


def parse_voter(text: str) -> Voter:
    """The voter of ``id@host:port`` or ``id@host:port:directory-id``.

    Raises:
        ValueError: If it is not of that form, or the host is one nobody can be reached at.
    """
    id_text, at, rest = text.partition("@")
    if not at or not id_text.isdecimal():
        raise ValueError(f"{text!r} is not id@host:port:directory-id")
    directory_id = ZERO_UUID
    match = _ADDRESS.match(rest)
    if match is not None and match.end() < len(rest):
        if rest[match.end()] != ":":
            raise ValueError(f"{text!r} is not id@host:port:directory-id")
        try:
            directory_id = uuid_from_text(rest[match.end() + 1 :])
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from error
        rest = rest[: match.end()]
    try:
        host, port = parse_address(rest)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    if host in WILDCARD_HOSTS:
        raise ValueError(f"{text!r}: no other node can reach the host {host!r}")
    return Voter(
        key=ReplicaKey(int(id_text), directory_id),
        endpoints=(Endpoint(CONTROLLER_LISTENER, host, port),),
    )


def address_problems(key: str, text: str) -> list[str]:
    """Return why the value of a setting is no ``host:port``; empty if it is one."""
    try:
        parse_address(text)
    except ValueError as error:
        return [f"{key}: {error}"]
    return []
