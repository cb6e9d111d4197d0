"""Why nothing is reached at an address, found out with a connection of our own.

gRPC reports most of this as one status with a text about its own parts. A short exchange of bytes
tells the causes apart. A cause is named only if the bytes show it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quorate.config.addresses import parse_address

LIMIT_S = 0.5
"""How long a connection may take, and again its first answer."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
"""What begins HTTP/2, with empty settings."""
_HTTP1_REQUEST = b"GET /livez HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n"
_HEADER_BYTES = 9
_SETTINGS_TYPE = 4
_TLS_RECORD_TYPES = (b"\x15", b"\x16")


@dataclass(frozen=True, slots=True)
class TlsPaths:
    """The files of a client with TLS."""

    ca: Path | None
    cert: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What is in the way at one address."""

    cause: str
    hint: str = ""
    is_lasting: bool = True
    """Whether time alone does not help; a node that starts ends a refused connection."""
    is_slow: bool = False
    """Whether nothing definite came: it may be a node that is only late."""


_SILENT = Obstacle("connected, but there is no answer", is_lasting=False, is_slow=True)
_PLAIN = Obstacle("the node uses no TLS, and this command does", "leave out --tls-ca")


SERVES_NO_CLIENTS = Obstacle(
    "an HTTP/2 server answers there, which is no node's client port",
    "name that of `listeners.client`",
)


class _FoundError(Exception):
    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.cause)
        self.obstacle = obstacle


async def obstacle_at(address: str, tls: TlsPaths | None) -> Obstacle | None:
    """Return what is in the way at ``address``; None if an HTTP/2 server answers there."""
    host, port = parse_address(address)
    try:
        if tls is not None:
            await _speak_tls(host, port, tls)
        else:
            await _speak_plain(host, port)
    except _FoundError as found:
        return found.obstacle
    return None


def obstacles_now(addresses: Sequence[str], tls: TlsPaths | None) -> dict[str, Obstacle]:
    """Return what is in the way by address, for a caller without an event loop: the Spark source.

    Empty as soon as one of them answers.
    """
    return asyncio.run(_obstacles_at(addresses, tls))


async def _obstacles_at(addresses: Sequence[str], tls: TlsPaths | None) -> dict[str, Obstacle]:
    async def examine(address: str) -> tuple[str, Obstacle | None]:
        return address, await obstacle_at(address, tls)

    found = {}
    for each in asyncio.as_completed([examine(address) for address in addresses]):
        address, obstacle = await each
        if obstacle is None:
            # The end of the event loop cancels the rest.
            return {}
        found[address] = obstacle
    return {address: found[address] for address in addresses}


async def _speak_plain(host: str, port: int) -> None:
    answer = await _exchange(host, port, None)
    if answer is None:
        raise _FoundError(_SILENT)
    if _is_http2(answer):
        return
    await _look_for_http1(host, port, answer, None)
    is_hello = answer[:1] in _TLS_RECORD_TYPES
    if is_hello or await _answers_tls(host, port):
        raise _FoundError(
            Obstacle("the node expects TLS, and this command uses none", "give --tls-ca")
        )
    _reject(answer)


async def _speak_tls(host: str, port: int, tls: TlsPaths) -> None:
    context = ssl.create_default_context(cafile=tls.ca)
    if tls.cert is not None and tls.key is not None:
        context.load_cert_chain(tls.cert, tls.key)
    context.set_alpn_protocols(["h2"])
    try:
        answer = await _exchange(host, port, context)
    except ssl.SSLCertVerificationError as error:
        raise _FoundError(
            Obstacle(
                f"its certificate is not accepted: {error.verify_message}",
                "--tls-ca must hold its issuer, and the certificate the name used here",
            )
        ) from error
    except ssl.SSLError as error:
        if "ALERT" in (error.reason or ""):
            raise _FoundError(_unwelcome(tls, f"refuses it ({_words(error)})")) from error
        await _look_for_plain(host, port)
        raise _FoundError(Obstacle(f"no TLS connection is made ({_words(error)})")) from error
    if answer is None:
        raise _FoundError(_SILENT)
    if answer == b"":
        # TLS 1.3 is made before the server has looked at the client's certificate.
        raise _FoundError(_unwelcome(tls, "hangs up after the TLS handshake"))
    if not _is_http2(answer):
        await _look_for_http1(host, port, answer, context)
        _reject(answer)


def _unwelcome(tls: TlsPaths, what: str) -> Obstacle:
    if tls.cert is None:
        return Obstacle(
            f"the node {what}, as one does that asks for a client's certificate",
            "give --tls-cert and --tls-key",
        )
    return Obstacle(
        f"the node {what}, as one does that refuses the client's certificate",
        "the node's `tls.ca_file` must hold the issuer of --tls-cert",
    )


def _words(error: ssl.SSLError) -> str:
    return (error.reason or "unknown").lower().replace("_", " ")


async def _exchange(
    host: str, port: int, context: ssl.SSLContext | None, words: bytes = _PREFACE
) -> bytes | None:
    """Connect, say ``words``, and return the first bytes of the answer.

    Empty if the server hangs up, None if it is silent.

    Raises:
        ssl.SSLError: TLS failed.
        _FoundError: There is no connection.
    """
    reader, writer = await _connected(host, port, context)
    try:
        writer.write(words)
        async with asyncio.timeout(LIMIT_S):
            return await reader.readexactly(_HEADER_BYTES)
    except asyncio.IncompleteReadError as error:
        return error.partial
    except TimeoutError:
        return None
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def _connected(
    host: str, port: int, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(LIMIT_S):
            return await asyncio.open_connection(
                host, port, ssl=context, server_hostname=host if context else None
            )
    except socket.gaierror as error:
        raise _FoundError(
            Obstacle(
                f"the name {host} has no address (DNS: {error.strerror})", "check its spelling"
            )
        ) from error
    except ConnectionRefusedError as error:
        raise _FoundError(
            Obstacle(
                "connection refused: nothing listens there",
                "start the node, or name another with --bootstrap",
                is_lasting=False,
            )
        ) from error
    except TimeoutError as error:
        if context is not None:
            await _look_for_plain(host, port)
        raise _FoundError(
            Obstacle("no connection in time", is_lasting=False, is_slow=True)
        ) from error
    except ssl.SSLError:
        raise
    except ConnectionError as error:
        if context is not None:
            await _look_for_plain(host, port)
        raise _FoundError(Obstacle("the connection is closed at once")) from error
    except OSError as error:
        raise _FoundError(
            Obstacle(f"no connection: {error.strerror or error}", is_lasting=False)
        ) from error


async def _look_for_plain(host: str, port: int) -> None:
    """Ask what makes no TLS connection in plain text; an HTTP/1 server may be silent until then."""
    answer = await _exchange(host, port, None)
    if answer is None:
        raise _FoundError(_SILENT)
    if _is_http2(answer):
        raise _FoundError(_PLAIN)
    await _look_for_http1(host, port, answer, None)


def _is_http2(answer: bytes) -> bool:
    """Whether it begins with the settings that every HTTP/2 server sends first."""
    return len(answer) == _HEADER_BYTES and answer[3] == _SETTINGS_TYPE and answer[5:] == bytes(4)


async def _look_for_http1(
    host: str, port: int, answer: bytes | None, context: ssl.SSLContext | None
) -> None:
    """Some HTTP/1 servers answer HTTP/2 with a bare text, so they are asked in their own words."""
    if answer is not None and answer.isascii() and answer.strip()[:5] not in (b"", b"HTTP/"):
        answer = await _exchange(host, port, context, _HTTP1_REQUEST)
    if answer is not None and answer.startswith(b"HTTP/"):
        raise _FoundError(
            Obstacle(
                "an HTTP/1 server answers there, no node's client port",
                "metrics and probes have a port of their own; name that of `listeners.client`",
            )
        )


def _reject(answer: bytes) -> None:
    what = "hangs up" if not answer else "answers there is no node's client port"
    raise _FoundError(Obstacle(f"connected, but what {what}" if answer else f"the server {what}"))


async def _answers_tls(host: str, port: int) -> bool:
    """Whether a server at the address begins TLS, with whatever certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        await _exchange(host, port, context)
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except _FoundError:
        return False
    return True
