"""Addresses as people write them: ``host:port``. Every command loads this module."""

from __future__ import annotations

import re

CONTROLLER_LISTENER = "CONTROLLER"
"""Name of the listener that voters are reached on."""
WILDCARD_HOSTS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, not bound
PORT_MAX = 65_535

ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<name>[^:\[\]@\s]*)):(?P<port>\d{1,5})")
"""The form of an address; what follows it is not looked at."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of ``host:port``; IPv6 hosts stand in brackets, an empty host is allowed.

    Raises:
        ValueError: If it is not of that form, or the port is above 65535.
    """
    match = ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not host:port")
    port = int(match["port"])
    if port > PORT_MAX:
        raise ValueError(f"{text!r}: port {port} is above {PORT_MAX}")
    return match["v6"] if match["v6"] is not None else match["name"], port


def address_problems(key: str, text: str) -> list[str]:
    """Return why the value of a setting is no ``host:port``; empty if it is one."""
    try:
        parse_address(text)
    except ValueError as error:
        return [f"{key}: {error}"]
    return []
