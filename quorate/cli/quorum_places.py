"""Which disk of which node a change of voters is about, and where it is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from quorate import client as library
from quorate.cli.connection import client_of
from quorate.cli.exits import CliError, Exit
from quorate.cli.patience import UnreachableError, unless_unreachable
from quorate.cli.quorum_view import directory_text
from quorate.cli.session import Session
from quorate.config.addresses import WILDCARD_HOSTS, parse_address
from quorum.types import uuid_from_text
from quorum.v1.common_pb2 import Endpoint

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Place:
    """Which disk, and where it is reached."""

    directory_id: bytes
    endpoints: tuple[Endpoint, ...]


def _parse_directory(_context: object, _parameter: object, value: str | None) -> bytes:
    if value is None:
        return b""
    try:
        return uuid_from_text(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _parse_endpoints(
    _context: object, _parameter: object, values: Sequence[str]
) -> tuple[Endpoint, ...]:
    return tuple(parse_endpoint(each) for each in values)


def _parse_at(_context: object, _parameter: object, value: str | None) -> str | None:
    if value is not None:
        _host_and_port(value)
    return value


def _host_and_port(address: str) -> tuple[str, int]:
    try:
        return parse_address(address)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def parse_endpoint(text: str) -> Endpoint:
    """The endpoint of ``NAME://host:port``.

    Raises:
        click.BadParameter: It is not of that form, or no node can be reached at such an address.
    """
    name, separator, address = text.partition("://")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME://host:port")
    host, port = _host_and_port(address)
    if host in WILDCARD_HOSTS or port == 0:
        raise click.BadParameter(f"{text!r}: no other node can reach that")
    return Endpoint(name=name, host=host, port=port)


def directory_option(function: Function) -> Function:
    """Add ``--directory-id``."""
    return click.option(
        "--directory-id", callback=_parse_directory, metavar="ID",
        help="Which disk, where the number alone does not say.",
    )(function)  # fmt: skip


def place_options(function: Function) -> Function:
    """Add ``--endpoint`` and ``--at``."""
    function = click.option(
        "--endpoint", "endpoints", multiple=True, callback=_parse_endpoints,
        metavar="NAME://HOST:PORT", help="Where it is reached; the replicas' listener first.",
    )(function)  # fmt: skip
    return click.option(
        "--at", metavar="HOST:PORT", callback=_parse_at,
        help="Ask the node itself there for its directory id and endpoints.",
    )(function)  # fmt: skip


async def find_place(
    session: Session,
    at: str | None,
    node: int,
    directory_id: bytes,
    endpoints: tuple[Endpoint, ...],
) -> Place:
    """The disk and its address; what was not given is requested from the node at that address."""
    if at is None:
        return Place(directory_id, endpoints)
    try:
        async with client_of(session, (at,)) as there:
            found = await unless_unreachable(
                session, (at,), there.describe_quorum(from_leader=False)
            )
    except (UnreachableError, library.UnavailableError) as error:
        why = error.obstacles[at].cause if isinstance(error, UnreachableError) else str(error)
        raise CliError(
            f"node {node} does not answer at {at}: {why}",
            hint="start it, and name its client address; --endpoint needs no answer from it",
            code=Exit.UNREACHABLE,
        ) from error
    if found.node_id != node:
        raise CliError(f"at {at} is node {found.node_id}, not {node}", code=Exit.CONFLICT)
    if directory_id not in (b"", found.directory_id):
        raise CliError(
            f"node {node} at {at} has directory {directory_text(found.directory_id)}",
            code=Exit.CONFLICT,
        )
    return Place(
        found.directory_id, endpoints or tuple(each.to_message() for each in found.own_endpoints)
    )
