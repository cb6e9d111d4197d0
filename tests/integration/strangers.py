"""Whatever may listen where a node used to: none of it is a node of the cluster under test."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from quorate.demo.local_cluster import HOST
from quorum.v1 import errors_pb2, metadata_pb2
from tests.integration.processes import running

FOREIGN_RESTARTS = 4
FAR_EPOCH = 1000


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    listener.listen()
    return listener


@contextlib.contextmanager
def silent(port: int, folder: Path) -> Iterator[None]:
    """Accepts connections and never sends anything."""
    with _listen(port):
        yield


@contextlib.contextmanager
def _talker(port: int, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    listener = _listen(port)
    taken: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                taken.append(connection)
                with contextlib.suppress(OSError):
                    answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in (listener, *taken):
            each.close()


@contextlib.contextmanager
def closing(port: int, folder: Path) -> Iterator[None]:
    """Takes connections and closes them at once."""
    with _talker(port, lambda connection: connection.close()):
        yield


@contextlib.contextmanager
def garbage(port: int, folder: Path) -> Iterator[None]:
    """Answers with noise."""
    with _talker(port, lambda connection: connection.sendall(os.urandom(4096))):
        yield


@contextlib.contextmanager
def web_server(port: int, folder: Path) -> Iterator[None]:
    """Speaks HTTP/1."""
    with _talker(port, lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")):
        yield


@contextlib.contextmanager
def _grpc_server(port: int, handle: Callable[[str, Any, Any], Any]) -> Iterator[None]:
    class Everything(grpc.GenericRpcHandler):
        def service(self, details: Any) -> Any:
            def serve(requests: Any, context: Any) -> Any:
                yield from handle(details.method, requests, context)

            return grpc.stream_stream_rpc_method_handler(serve)

    server = grpc.server(ThreadPoolExecutor(32), options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((Everything(),))
    server.add_insecure_port(f"{HOST}:{port}")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


@contextlib.contextmanager
def cancelling(port: int, folder: Path) -> Iterator[None]:
    """A gRPC server that ends every call as cancelled."""

    def handle(_method: str, _requests: Any, context: Any) -> Iterator[bytes]:
        context.abort(grpc.StatusCode.CANCELLED, "not today")
        yield b""

    with _grpc_server(port, handle):
        yield


@contextlib.contextmanager
def mute(port: int, folder: Path) -> Iterator[None]:
    """A gRPC server that takes every call and never answers."""
    ended = threading.Event()

    def handle(_method: str, _requests: Any, context: Any) -> Iterator[bytes]:
        context.add_callback(ended.set)
        context.send_initial_metadata(())
        ended.wait()
        yield from ()

    with _grpc_server(port, handle):
        try:
            yield
        finally:
            ended.set()


@contextlib.contextmanager
def pretender(port: int, folder: Path) -> Iterator[None]:
    """Claims to lead a far epoch, accepts write streams, and answers nothing more."""
    ended = threading.Event()

    def handle(method: str, requests: Any, context: Any) -> Iterator[bytes]:
        if not method.endswith("WriteStream"):
            hint = errors_pb2.LeaderHint(leader_id=9, leader_epoch=FAR_EPOCH)
            yield hint.SerializeToString()
            return
        accepted = metadata_pb2.WriteStreamResponse()
        accepted.accepted.leader_epoch = FAR_EPOCH
        yield accepted.SerializeToString()
        context.add_callback(ended.set)
        ended.wait()

    with _grpc_server(port, handle):
        try:
            yield
        finally:
            ended.set()


@contextlib.contextmanager
def foreign_cluster(port: int, folder: Path) -> Iterator[None]:
    """The leader of another Quorate cluster, many epochs further on."""
    with running(folder, voters=1, cluster_id="foreign", starts=False) as other:
        other.environment["QUORATE__QUORUM__ELECTION_TIMEOUT_MS"] = "50"
        (node,) = other.voters
        other.start_all()
        for _ in range(FOREIGN_RESTARTS):
            other.stop(node)
            other.start_all()
        other.stop(node)
        # It listens here, but still advertises its old address as a voter.
        node.settings["listeners.client"] = f"{HOST}:{port}"
        other.configure(node)
        other.start_all()
        yield


STRANGERS = (
    silent,
    closing,
    garbage,
    web_server,
    cancelling,
    mute,
    pretender,
    foreign_cluster,
)
