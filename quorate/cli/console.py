"""``quorate console``: a read-only page about a cluster, on a port of its own."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path

import click

from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.connection import client_of
from quorate.cli.exits import CliError, Exit
from quorate.cli.patience import UnreachableError, obstacles
from quorate.cli.session import Session
from quorate.cli.tls_files import credentials_of

LISTEN_DEFAULT = "127.0.0.1:9192"
NICENESS = 10
"""Loading a large state takes a processor for half a minute: a node beside it comes first."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=SessionCommand)
@click.option(
    "--listen",
    default=LISTEN_DEFAULT,
    show_default=True,
    metavar="HOST:PORT",
    help="Where the page is; other than loopback needs TLS and a token.",
)
@click.option("--server-cert", type=_FILE, help="PEM certificate of the page; turns HTTPS on.")
@click.option("--server-key", type=_FILE, help="PEM private key of the page.")
@click.option("--token-file", type=_FILE, help="A file with what visitors must show.")
@click.option("--host-name", multiple=True, help="A name that the page is served under.")
@click.option("--prometheus", default="", metavar="URL", help="Who evaluates the alert rules.")
@click.option(
    "--unsafe-insecure-listener",
    is_flag=True,
    help="Let other machines read everything, without TLS or a token.",
)
@pass_session
def console(
    session: Session,
    listen: str,
    server_cert: Path | None,
    server_key: Path | None,
    token_file: Path | None,
    host_name: tuple[str, ...],
    prometheus: str,
    unsafe_insecure_listener: bool,
) -> None:
    """Show a cluster in a browser: read-only, in a process of its own.

    It follows the cluster as a client does. A certificate given by --tls-cert needs the right to
    describe the cluster and to read the log.
    """
    missing = [name for name in ("starlette", "uvicorn", "jinja2") if find_spec(name) is None]
    if missing:
        raise CliError(
            f"the console needs {', '.join(missing)}",
            hint="install the extra: pip install 'quorate[console]'",
            code=Exit.FAILED,
        )
    if prometheus and not prometheus.startswith(("http://", "https://")):
        raise CliError("--prometheus is no http:// or https:// address", code=Exit.USAGE)
    from quorate.console.binding import checked_binding
    from quorate.console.run import run_console

    binding = checked_binding(
        listen,
        certificate=server_cert,
        key=server_key,
        token_file=token_file,
        host_names=tuple(name.lower() for name in host_name),
        is_unsafe_allowed=unsafe_insecure_listener,
    )
    servers = session.servers()

    async def explain() -> str:
        found = await obstacles(session, servers)
        return str(UnreachableError(found)) if len(found) == len(servers) else ""

    async def run() -> None:
        if problem := await explain():
            session.announce(f"warning: {problem}; the console keeps trying")
        await run_console(
            lambda: client_of(session, servers),
            binding,
            explain=explain,
            prometheus=prometheus,
            on_listening=lambda url: session.announce(f"console at {url}"),
        )

    credentials_of(session)
    os.nice(NICENESS)
    asyncio.run(run())
