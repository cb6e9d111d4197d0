"""Plain TCP attempts at a peer, because gRPC hides why a connection failed.

"Refused" is the only result that proves that no process listens there: it comes from the kernel
of a reachable host. Silence, unreachable networks and names that do not resolve prove nothing
(ADR 8).
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from dataclasses import dataclass
from enum import Enum, auto


class Reachability(Enum):
    """Result of an attempt to connect."""

    ACCEPTED = auto()
    REFUSED = auto()
    RESET = auto()
    """Accepted by the kernel and dropped at once: a listener that is closing."""
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """One resolved address of a peer."""

    family: socket.AddressFamily
    host: str
    port: int

    @property
    def target(self) -> str:
        """Return the address as a gRPC target that needs no resolver."""
        if self.family is socket.AF_INET6:
            return f"ipv6:[{self.host}]:{self.port}"
        return f"ipv4:{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """Outcome of ``connect_once``; ``address`` is the one that accepted."""

    reachability: Reachability
    address: SocketAddress | None = None
    detail: str = ""


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of ``host:port`` or ``[v6]:port``.

    Raises:
        ValueError: Another form.
    """
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) <= 65535:
        raise ValueError(f"not host:port: {address!r}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"an IPv6 host needs brackets: {address!r}")
    return host, int(port)


async def resolve(address: str) -> tuple[SocketAddress, ...]:
    """Return every address of a ``host:port``, in the resolver's order.

    Raises:
        OSError: The name does not resolve.
        ValueError: Not ``host:port``.
    """
    host, port = split_address(address)
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        # The IDNA codec objects to labels that no resolver would have.
        raise ValueError(f"not a host name: {host!r}") from error
    return tuple(SocketAddress(family, str(where[0]), port) for family, _, _, _, where in found)


async def connect_once(addresses: tuple[SocketAddress, ...], timeout_s: float) -> Attempt:
    """Try each address once, in order, and close the connection again.

    Returns:
        ACCEPTED at the first that accepts; REFUSED only if all were actively refused; RESET
        if all were refused or reset; UNKNOWN otherwise. With the last cause in words.
    """
    causes: set[int | None] = set()
    detail = "no address"
    for address in addresses:
        cause = await _try(address, timeout_s)
        if cause is None:
            return Attempt(Reachability.ACCEPTED, address)
        causes.add(cause.errno)
        # asyncio's own text repeats the address, but gives the reason as a number only.
        reason = os.strerror(cause.errno) if cause.errno else str(cause)
        detail = f"{address.host}: {reason}"
    if causes == {errno.ECONNREFUSED}:
        return Attempt(Reachability.REFUSED, detail=detail)
    if causes and causes <= {errno.ECONNREFUSED, errno.ECONNRESET}:
        return Attempt(Reachability.RESET, detail=detail)
    return Attempt(Reachability.UNKNOWN, detail=detail)


async def _try(address: SocketAddress, timeout_s: float) -> OSError | None:
    loop = asyncio.get_running_loop()
    try:
        # Creating the socket fails too: without descriptors, memory, or the address family.
        with socket.socket(address.family, socket.SOCK_STREAM) as sock:
            sock.settimeout(0)
            async with asyncio.timeout(timeout_s):
                await loop.sock_connect(sock, (address.host, address.port))
    except TimeoutError:
        return OSError(errno.ETIMEDOUT, "no answer in time")
    except OSError as error:
        return error
    return None
