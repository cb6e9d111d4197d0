"""Why an address cannot be listened on, in words."""

from __future__ import annotations

import errno
import os
import socket

_NO_SUCH_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_NOT_OURS = (*_NO_SUCH_FAMILY, errno.EACCES)
_NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of a host; an empty host is all addresses.

    Raises:
        OSError: One cannot be listened on. ``listen_problem`` says why.
    """
    opened: list[socket.socket] = []
    skipped: OSError | None = None
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    try:
        for family, _, _, _, place in found:
            try:
                opened.append(socket.create_server(place[:2], family=family))
            except OSError as error:
                # As for `localhost` on a machine without IPv6.
                if error.errno not in _NO_SUCH_FAMILY:
                    raise
                skipped = error
        if not opened and skipped is not None:
            raise skipped
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened


def listen_problem(error: OSError) -> str:
    """Return what is in the way, and what that usually means."""
    if isinstance(error, socket.gaierror):
        return f"the name has no address (DNS: {error.strerror})"
    text = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == errno.EADDRINUSE:
        return f"{text}; is another process using the port?"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{text}; is the address one of this machine?"
    if error.errno == errno.EACCES:
        return (
            f"{text}; is the port below 1024? Choose a higher one, or give the process the "
            "capability CAP_NET_BIND_SERVICE"
        )
    return text


def is_wrong_address(error: BaseException | None) -> bool:
    """Return whether another attempt must fail too: the address is wrong, not in use.

    A name that nobody could look up just now (EAI_AGAIN) may be found later.
    """
    if isinstance(error, socket.gaierror):
        return error.errno in _NO_SUCH_NAME
    return isinstance(error, OSError) and error.errno in _NOT_OURS
