"""Counts the bytes of the TCP connections to a port of this machine, from the kernel.

It uses ``sock_diag`` of netlink, which needs no privileges. No proxy between the two ends is
needed, and the counters of the measured program are not used.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_DUMP = 0x301
"""NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH."""
_WANT_INFO = 1 << 1
_INET_DIAG_INFO = 2
_ESTABLISHED = 1 << 1
_HEADER = struct.Struct("=IHHII")
_MESSAGE_BYTES = 72
_RECEIVED_AT = 128
_SENT_AT = 200
"""Positions of ``tcpi_bytes_received`` and ``tcpi_bytes_sent`` in ``tcp_info``;
``tcpi_bytes_retrans`` follows the latter. Acknowledged bytes may lag behind received ones, so they
are not used.
"""


def bytes_by_peer(port: int) -> dict[int, int]:
    """Return the bytes sent and received by each accepted connection, by the peer's port.

    Payload of open connections, without headers and retransmissions.

    Raises:
        OSError: The kernel does not answer.
    """
    found: dict[int, int] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as asking:
        for family in (socket.AF_INET, socket.AF_INET6):
            asking.send(_request(family, port))
            for message in _answers(asking):
                own, peer = struct.unpack_from("!HH", message, 4)
                if own == port:
                    found[peer] = sum(_sent_and_received(message))
    return found


def grown(before: Mapping[int, int], after: Mapping[int, int]) -> int:
    """Bytes between two looks. What a connection carried that ended meanwhile is not in it."""
    return sum(count - before.get(peer, 0) for peer, count in after.items())


def _request(family: int, port: int) -> bytes:
    about = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, _WANT_INFO, 0, _ESTABLISHED)
    # The socket asked for: its own port; any other port, any addresses, any cookie.
    about += struct.pack("!HH", port, 0) + bytes(36) + b"\xff" * 8
    length = _HEADER.size + len(about)
    return _HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _DUMP, 1, 0) + about


def _answers(asking: socket.socket) -> Iterator[bytes]:
    while True:
        datagram = asking.recv(1 << 18)
        while datagram:
            length, kind, _, _, _ = _HEADER.unpack_from(datagram)
            if kind == _NLMSG_DONE:
                return
            if kind == _NLMSG_ERROR:
                (number,) = struct.unpack_from("=i", datagram, _HEADER.size)
                raise OSError(-number, "sock_diag refused")
            yield datagram[_HEADER.size : length]
            datagram = datagram[_aligned(length) :]


def _sent_and_received(message: bytes) -> tuple[int, int]:
    attributes = message[_MESSAGE_BYTES:]
    while len(attributes) >= 4:
        length, kind = struct.unpack_from("=HH", attributes)
        if kind == _INET_DIAG_INFO:
            (received,) = struct.unpack_from("=Q", attributes, 4 + _RECEIVED_AT)
            sent, repeated = struct.unpack_from("=QQ", attributes, 4 + _SENT_AT)
            return sent - repeated, received
        attributes = attributes[_aligned(length) :]
    return 0, 0


def _aligned(length: int) -> int:
    return (length + 3) & ~3
