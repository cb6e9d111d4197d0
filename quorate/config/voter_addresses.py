"""Voters as people write them: ``id@host:port`` and ``id@host:port:directory``."""

from __future__ import annotations

from quorate.config.addresses import ADDRESS, CONTROLLER_LISTENER, WILDCARD_HOSTS, parse_address
from quorum.types import ZERO_UUID, Endpoint, ReplicaKey, Voter, uuid_from_text


def parse_voter(text: str) -> Voter:
    """The voter of ``id@host:port`` or ``id@host:port:directory-id``.

    Raises:
        ValueError: If it is not of that form, or the host is one nobody can be reached at.
    """
    id_text, at, rest = text.partition("@")
    if not at or not id_text.isdecimal():
        raise ValueError(f"{text!r} is not id@host:port:directory-id")
    directory_id = ZERO_UUID
    match = ADDRESS.match(rest)
    if match is not None and match.end() < len(rest):
        if rest[match.end()] != ":":
            raise ValueError(f"{text!r} is not id@host:port:directory-id")
        try:
            directory_id = uuid_from_text(rest[match.end() + 1 :])
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from error
        rest = rest[: match.end()]
    try:
        host, port = parse_address(rest)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    if host in WILDCARD_HOSTS:
        raise ValueError(f"{text!r}: no other node can reach the host {host!r}")
    return Voter(
        key=ReplicaKey(int(id_text), directory_id),
        endpoints=(Endpoint(CONTROLLER_LISTENER, host, port),),
    )
