"""``--writer`` and ``--request-id``: a command that a script may run again.

The writer's name fences the script's former runs. The request id makes the repeat of a command get
its first answer, from any leader and after any restart (360.8, ADR 68).
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from quorate.cli.exits import CliError, Exit
from quorate.cli.session import Session
from quorate.client.limits import REQUEST_ID_BYTES_MAX, WRITER_NAME_MAX
from quorum.scram import SALT_BYTES
from quorum.types import draw_directory_id

Function = TypeVar("Function", bound=Callable[..., Any])


def request_options(function: Function) -> Function:
    """Add ``--writer`` and ``--request-id`` to a command; they fill in the session.

    A dry run has no use for them: it neither fences nor is remembered.
    """

    @functools.wraps(function)
    def with_request(*arguments: Any, writer: str, request_id: str, **options: Any) -> Any:
        check_request(writer, request_id)
        if not options.get("dry_run"):
            session = click.get_current_context().ensure_object(Session)
            session.writer, session.request_id = writer, request_id
        return function(*arguments, **options)

    writer = click.option(
        "--writer",
        default="",
        metavar="NAME",
        envvar="QUORATE_WRITER",
        help="Name of the script that writes. Its newest run fences the earlier ones.",
    )
    request_id = click.option(
        "--request-id",
        default="",
        metavar="ID",
        help="Name of this step of the writer: run again, it gets its first answer.",
    )
    return cast("Function", writer(request_id(with_request)))


def check_request(writer: str, request_id: str) -> None:
    """Refuse names that the cluster would refuse.

    Raises:
        CliError: A name is too long, or there is a request id without a writer.
    """
    if request_id and not writer:
        raise CliError(
            "--request-id belongs to a writer",
            hint="add --writer NAME, the same name in every run of the script",
            code=Exit.USAGE,
        )
    if len(writer) > WRITER_NAME_MAX:
        raise CliError(
            f"--writer: {len(writer)} characters, more than {WRITER_NAME_MAX}", code=Exit.USAGE
        )
    if len(request_id.encode("utf-8", "replace")) > REQUEST_ID_BYTES_MAX:
        raise CliError(f"--request-id: more than {REQUEST_ID_BYTES_MAX} bytes", code=Exit.USAGE)


def drawn_uuid(session: Session, purpose: str) -> bytes:
    """Return an id for what this command creates: random, or the same one in each repeat."""
    if not session.request_id:
        return draw_directory_id(os.urandom)
    attempts = iter(range(256))

    def derived(count: int) -> bytes:
        parts = (session.writer, session.request_id, purpose, str(next(attempts)))
        text = "\0".join(parts).encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, digest_size=count).digest()

    return draw_directory_id(derived)


def repeatable_salt(session: Session, name: str, mechanism: str) -> bytes:
    """Return the salt of a credential that this step sets; empty without a request id.

    A salt is public and has to be another one for each credential. It must not depend on the
    password: a hash of that which is quick to compute would make guesses cheap.
    """
    if not session.request_id:
        return b""
    parts = ("scram salt", session.writer, session.request_id, name, mechanism)
    text = "".join(f"{len(each)}:{each}" for each in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:SALT_BYTES]
