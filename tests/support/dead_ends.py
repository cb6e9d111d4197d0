"""Servers that are no node's client port, at real sockets: for what is told apart about them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import grpc

from quorum.transport.security import TlsFiles


class Refusing(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Refuses every call, as a node does a stranger's."""

    def service(self, _details: grpc.HandlerCallDetails) -> object:
        def refuse(_requests: object, context: grpc.ServicerContext) -> object:
            return context.abort(grpc.StatusCode.PERMISSION_DENIED, "not for you")

        return grpc.stream_unary_rpc_method_handler(refuse)


@contextlib.contextmanager
def grpc_server(
    tls: TlsFiles | None = None, *, asks_clients: bool = False, is_node: bool = False
) -> Iterator[str]:
    """A gRPC server without services; as a node it refuses every call."""
    server = grpc.server(ThreadPoolExecutor(1), handlers=(Refusing(),) if is_node else ())
    if tls is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        credentials = grpc.ssl_server_credentials(
            [(tls.key.read_bytes(), tls.certificate.read_bytes())],
            tls.authorities.read_bytes() if asks_clients else None,
            require_client_auth=asks_clients,
        )
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


@contextlib.contextmanager
def http_server() -> Iterator[str]:
    """What answers at the port of metrics and probes."""

    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, *_arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def metrics_server() -> Iterator[str]:
    """As `metrics.listen` of a node: it waits for the end of a request, and never answers TLS."""

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                received = connection.recv(4096)
                if not received:
                    return
                request += received
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with _accepting(serve) as address:
        yield address


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """Something that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@contextlib.contextmanager
def foreign_http2_server() -> Iterator[str]:
    """A proxy, for example: it answers every request with status 404."""

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(bytes.fromhex("000000 04 00 00000000"))
            stream = connection.makefile("rb")
            stream.read(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
            while head := stream.read(9):
                size, kind, number = int.from_bytes(head[:3], "big"), head[3], head[5:9]
                stream.read(size)
                if kind == 1:
                    # HEADERS, the last of its stream: entry 13 of HPACK's static table.
                    connection.sendall(b"\x00\x00\x01\x01\x05" + number + b"\x8d")
                elif kind == 4 and not head[4] & 1:
                    connection.sendall(bytes.fromhex("000000 04 01 00000000"))

    with _accepting(serve) as address:
        yield address


@contextlib.contextmanager
def _accepting(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"
