"""The kernel's counts are those of what was sent, by connection."""

from __future__ import annotations

import socket

import pytest

from tests.integration.socket_bytes import bytes_by_peer, grown

pytestmark = pytest.mark.integration


def test_what_was_sent_and_received_is_counted_by_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as one:
            accepted, _ = server.accept()
            with accepted, socket.create_connection(("127.0.0.1", port)) as other:
                first, second = one.getsockname()[1], other.getsockname()[1]
                assert bytes_by_peer(port) == {first: 0, second: 0}
                one.sendall(bytes(1000))
                assert accepted.recv(1000, socket.MSG_WAITALL) == bytes(1000)
                accepted.sendall(bytes(77))
                assert one.recv(77, socket.MSG_WAITALL) == bytes(77)
                assert bytes_by_peer(port) == {first: 1077, second: 0}


def test_connections_that_came_count_and_those_that_went_do_not() -> None:
    assert grown({1: 10, 2: 5}, {1: 30, 3: 7}) == 27
