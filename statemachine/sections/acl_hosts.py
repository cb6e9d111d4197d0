"""Hosts of ACLs: one text per address, so that ``::1`` and ``0:0:0:0:0:0:0:1`` are the same host.

Kafka compares with what Java's ``getHostAddress`` writes, the long form of an IPv6 address. gRPC
writes the short form. Logs and filters keep the text of the ACL; decisions use the canonical one.
"""

from __future__ import annotations

import ipaddress
from typing import Final

ANY_HOST: Final = "*"


def canonical_host(text: str) -> str:
    """Return the text that all ways to write an address have in common.

    An IPv4 address inside IPv6 (``::ffff:10.0.0.1``) is that IPv4 address, as in Java. What is no
    address is returned as it is.
    """
    if ":" not in text:
        return text  # An IPv4 address can be written in one way only.
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return text
    return str(address.ipv4_mapped or address)


def is_host(text: str) -> bool:
    """Whether an ACL of this host can match a caller: every host, or one address."""
    if text == ANY_HOST:
        return True
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
