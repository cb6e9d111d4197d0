"""Addresses as a client meets them when pods move: names that change, and dead machines."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

_HEADER_BYTES = 12
_ANSWER, _NO_SUCH_NAME = 0x8580, 0x8583
_A = 1


class NameServer(asyncio.DatagramProtocol):
    """DNS for the names in ``addresses``, IPv4 only. Its names end with ``.test``."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def target(self, name: str, port: int) -> str:
        """Return the address of a node for a client, whose name is looked up here."""
        own = self._transport.get_extra_info("sockname")[1]
        return f"dns://127.0.0.1:{own}/{name}:{port}"

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        labels, place = [], _HEADER_BYTES
        while size := data[place]:
            labels.append(data[place + 1 : place + 1 + size].decode())
            place += 1 + size
        (kind,) = struct.unpack("!H", data[place + 1 : place + 3])
        found = self.addresses.get(".".join(labels))
        records = b""
        if found is not None and kind == _A:
            records = b"\xc0\x0c" + struct.pack("!HHIH", _A, 1, 0, 4) + socket.inet_aton(found)
        status = _NO_SUCH_NAME if found is None else _ANSWER
        counts = struct.pack("!HHHHH", status, 1, bool(records), 0, 0)
        question = data[_HEADER_BYTES : place + 5]
        self._transport.sendto(data[:2] + counts + question + records, addr)


@asynccontextmanager
async def name_server() -> AsyncIterator[NameServer]:
    """Serve names on a free port."""
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    try:
        yield server
    finally:
        transport.close()


@contextmanager
def silent_address(host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """An address that answers no attempt to connect, as that of a machine that is gone.

    Linux drops the first packet of a connection that a full backlog has no place for.
    """
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(0)
        place = listening.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        try:
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(place)
            yield f"{place[0]}:{place[1]}"
        finally:
            for each in waiting:
                each.close()
