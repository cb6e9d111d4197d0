"""From a command to the cluster and back: one client per call, its errors as exit codes.

Importing it loads no gRPC: ``library`` loads a module of the client when a name of it is used, so
that help, completion and mistakes in the arguments are quick.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from quorate import client as library
from quorate.cli.client_port import LIMIT_S
from quorate.cli.did_you_mean import did_you_mean
from quorate.cli.exits import CliError, Exit, exit_for_code
from quorate.cli.output import Result
from quorate.cli.passwords import password_from
from quorate.cli.patience import UnreachableError, obstacles, unless_unreachable
from quorate.cli.ranges import WholeNumber
from quorate.cli.reachability import Obstacle
from quorate.cli.requests import request_options
from quorate.cli.session import Session
from quorate.cli.tls_files import credentials_of
from quorate.config.secret_files import read_secret
from quorum.errors import ConfigError, ErrorCode

if TYPE_CHECKING:
    from quorate.cli.request_client import RequestClient
    from quorate.client import Applied, Client
    from quorate.client.results.metadata import ReadPosition
    from quorum.v1.metadata_pb2 import ReadOptions

Answer = TypeVar("Answer")
Function = TypeVar("Function", bound=Callable[..., Any])

CLIENT_ID = "quorate-cli"
_LAST_CALL_S_MIN = 0.5
"""Less than what ``ask`` grants beyond the timeout, so that the call itself says how it ended."""
_NEAR_TOPICS_MAX = 1000
READ_LEVELS = ("linearizable", "local")


def ask(
    session: Session,
    work: Callable[[Client], Awaitable[Answer]],
    *,
    reason: str = "",
    topic: str = "",
    is_bounded: bool = True,
) -> Answer:
    """Run ``work`` with a client of the session's servers.

    ``reason`` goes into the audit trail of what is written. If there is no such ``topic``, the
    error names one whose name is near. The session's timeout bounds each call and, unless
    ``is_bounded`` is false, the whole.

    Raises:
        CliError: The cluster could not be reached or refused, or the outcome is unknown.
    """
    limit_s = session.timeout_s + 1 if is_bounded else None

    async def with_hint(client: Client) -> Answer:
        try:
            return await work(client)
        except library.RefusedError as error:
            if not topic or error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            hint = await near_topic(client, topic)
            raise CliError(str(error), hint=hint, code=Exit.NOT_FOUND) from error

    return asyncio.run(_ask(session, with_hint, reason, limit_s))


def time_left(session: Session, spent_s: float) -> float:
    """Seconds of the session's timeout for a command's last call, of which some are always left."""
    return max(_LAST_CALL_S_MIN, session.timeout_s - spent_s)


def client_of(
    session: Session,
    servers: tuple[str, ...],
    *,
    reason: str = "",
    log_incarnation: bytes = b"",
) -> RequestClient:
    """A client with the session's credentials and timeout, inside of what ``ask`` runs."""
    # Loaded here, with the client.
    from quorate.cli.request_client import RequestClient

    credentials = credentials_of(session)
    client = RequestClient(
        servers,
        client_id=CLIENT_ID,
        reason=reason,
        credentials=credentials,
        user=session.sasl_user,
        password=password_of(session),
        token=token_of(session),
        writer=session.writer,
        timeout_seconds=session.timeout_s,
        log_incarnation=log_incarnation,
    )
    client.request_id = session.request_id
    return client


async def _ask(
    session: Session,
    work: Callable[[Client], Awaitable[Answer]],
    reason: str,
    limit_s: float | None,
) -> Answer:
    servers = session.servers()
    try:
        async with client_of(session, servers, reason=reason) as client:
            try:
                async with asyncio.timeout(limit_s):
                    return await unless_unreachable(
                        session, servers, work(client), is_in_doubt=lambda: client.is_in_doubt
                    )
            except (TimeoutError, UnreachableError, library.UnavailableError) as error:
                if client.is_in_doubt:
                    raise library.OutcomeUnknownError("there is no answer") from error
                raise
    except TimeoutError as error:
        late = f"no answer within {session.timeout_s:g} s"
        raise await _unavailable(session, servers, late) from error
    except library.UnavailableError as error:
        cause = error.__cause__
        if isinstance(cause, library.RefusedError) and not isinstance(
            cause, library.NotServedError
        ):
            raise CliError(
                f"the cluster cannot do that now through {', '.join(servers)}: {error}",
                hint=_hint_for_later(cause.code),
                code=Exit.UNREACHABLE,
            ) from error
        raise await _unavailable(session, servers, str(error)) from error
    except library.OutcomeUnknownError as error:
        found = await obstacles(session, servers)
        where = f"; {UnreachableError(found)}" if len(found) == len(servers) else ""
        raise CliError(
            f"sent, but the outcome is unknown: {error}{where}",
            hint=(
                "run it again with the same --writer and --request-id: it is applied once"
                if session.request_id
                else "look before repeating: it may have been applied"
            ),
            code=Exit.UNREACHABLE,
        ) from error
    except library.ProducerFencedError as error:
        raise CliError(
            str(error),
            hint=f"another run of writer {error.writer!r} began meanwhile; nothing of this one "
            "was applied",
            code=Exit.CONFLICT,
        ) from error
    except library.NotServedError as error:
        found = await obstacles(session, servers)
        if len(found) == len(servers):
            raise UnreachableError(found) from error
        raise CliError(str(error), code=refusal_exit(error.code)) from error
    except library.RefusedError as error:
        is_unknown = error.code == ErrorCode.SASL_AUTHENTICATION_FAILED
        raise CliError(
            str(error),
            hint="check --sasl-user and its password, or --sasl-token-file" if is_unknown else "",
            code=refusal_exit(error.code),
        ) from error
    except library.ClientError as error:
        raise CliError(str(error)) from error


def _hint_for_later(code: int) -> str:
    """What to do about a refusal that may end by itself."""
    if code == ErrorCode.OFFSET_NOT_AVAILABLE:
        return "`quorum describe status` shows the high watermark: how far offsets go"
    return "`quorum describe status` and `--read local` also work without a leader"


def refusal_exit(code: int) -> Exit:
    """The exit code for a protocol code, also one this release does not know."""
    try:
        return exit_for_code(ErrorCode(code))
    except ValueError:
        return Exit.FAILED


def result_name(code: int) -> str:
    """Name the outcome of one part of a command: OK, or the error."""
    # Loaded when there is an answer: it takes gRPC with it.
    from quorate.client.errors import code_name

    return code_name(code) if code else "OK"


def missing_or_denied(kind: str, names: str, code: int) -> str:
    """Why something cannot be shown: it does not exist, or the caller may not see it."""
    is_denied = refusal_exit(code) is Exit.REFUSED
    return f"not allowed for this {kind}: {names}" if is_denied else f"no such {kind}: {names}"


async def _unavailable(session: Session, servers: tuple[str, ...], cause: str) -> CliError:
    """What is in the way at each server; ``cause`` for those that can be reached."""
    found = await obstacles(session, servers)
    well = [server for server in servers if server not in found]
    if not well:
        return UnreachableError(found)
    is_leaderless = await asyncio.gather(*(_knows_no_leader(session, server) for server in well))
    lack = Obstacle(cause)
    if all(is_leaderless):
        lack = Obstacle(f"no leader is known there; {cause}", "`quorate health` asks every node")
    return UnreachableError({**found, ", ".join(well): lack})


async def _knows_no_leader(session: Session, server: str) -> bool:
    """Whether a node answers, and knows no leader. False for one that refuses, or is late."""
    # Loaded here, with the client.
    from quorate.client.errors import ClientError

    async with client_of(session, (server,)) as client:
        try:
            async with asyncio.timeout(LIMIT_S):
                return (await client.describe_cluster()).leader_id < 0
        except (ClientError, TimeoutError):
            return False


def password_of(session: Session) -> str:
    """Return the password of the session's user, asked for or read once; empty without a user.

    Raises:
        CliError: There is none.
    """
    if not session.sasl_user:
        return ""
    if not session.sasl_password:
        session.sasl_password = password_from(
            session.sasl_password_file,
            f"Password of {session.sasl_user}",
            flag="--sasl-password-file",
        )
    return session.sasl_password


def token_of(session: Session) -> str:
    """Return the token in the session's file; empty without one.

    Raises:
        CliError: The file is no usable secret.
    """
    if session.sasl_token_file is None:
        return ""
    try:
        return read_secret(session.sasl_token_file, "--sasl-token-file")
    except ConfigError as error:
        raise CliError(str(error), code=Exit.USAGE) from error


def read_option(function: Function) -> Function:
    """Add ``--read`` and ``--at-least``, handed over as ``read`` (a ``ReadOptions``)."""

    @functools.wraps(function)
    def with_read(*arguments: Any, level: str | None, offset: int | None, **options: Any) -> Any:
        return function(*arguments, read=read_options(level, offset), **options)

    at_least_option = click.option(
        "--at-least",
        "offset",
        type=WholeNumber(min=0),
        metavar="OFFSET",
        help="Wait until the node asked has applied everything below this offset.",
    )
    read = click.option(
        "--read",
        "level",
        type=click.Choice(READ_LEVELS),
        help="linearizable (the default) shows every write acknowledged before, "
        "local what the node asked has.",
    )
    return cast("Function", read(at_least_option(with_read)))


def read_options(level: str | None, offset: int | None) -> ReadOptions:
    """What ``--read`` and ``--at-least`` ask for together.

    Raises:
        CliError: Both were given.
    """
    if offset is None:
        return library.LOCAL if level == "local" else library.LINEARIZABLE
    if level is not None:
        raise CliError("--read and --at-least exclude each other", code=Exit.USAGE)
    return library.at_least(offset)


def write_options(function: Function) -> Function:
    """Add ``--dry-run``, ``--reason``, ``--writer`` and ``--request-id`` to a command that writes.

    It writes once, or its other writes need no request id.
    """
    return reason_options(request_options(function))


def reason_options(function: Function) -> Function:
    """Add ``--dry-run`` and ``--reason`` to a command that changes something."""
    function = click.option("--reason", default="", help="Why; kept in the audit trail.")(function)
    return click.option("--dry-run", is_flag=True, help="Only say what would be done.")(function)


def show_applied(
    session: Session, kind: str, applied: Applied, *, dry_run: bool, **fields: object
) -> None:
    """Show a command that was applied, or evaluated without being applied."""
    position = {"dry_run": dry_run, "end_offset": applied.offset, "epoch": applied.epoch}
    session.show(Result(kind, {**fields, **position}))


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before something is destroyed; without a terminal ``--yes`` is needed.

    Raises:
        CliError: Nobody can be asked.
        click.Abort: The answer was no.
    """
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise CliError(
            f"nothing was done, because there is no terminal to ask on: {question}",
            hint="--yes answers yes",
            code=Exit.REFUSED,
        )
    click.confirm(question, abort=True, err=True)


async def near_topic(client: Client, name: str) -> str:
    """A hint for a topic that does not exist: one whose name is near, as a question; or empty.

    Topics are compared that begin alike, a thousand of them at most.
    """
    before = name[:1]
    # The page begins behind a name, so behind one just below the first letter.
    after = chr(ord(before) - 1) + "\x7f" if before > "!" else ""
    try:
        page = await client.list_topics(after_name=after, limit=_NEAR_TOPICS_MAX)
    except library.ClientError:
        return ""
    return did_you_mean(name, (each.name for each in page.topics))


def position_fields(position: ReadPosition) -> dict[str, object]:
    """Which state an answer shows, as fields of a document."""
    return {
        "read_offset": position.offset,
        "read_epoch": position.epoch,
        "read_age_ms": position.age_ms,
        "answered_by": position.node_id,
    }
