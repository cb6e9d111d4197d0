"""``quorate probe``: whether the node of this configuration is alive, or ready."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

import click

from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.node_options import config_options, load_unjudged
from quorate.cli.output import Result
from quorate.cli.session import Session

_TIMEOUT_S = 2.0


@click.command(cls=LocalCommand)
@config_options
@click.option("--ready", is_flag=True, help="Ask /readyz instead of /livez.")
@pass_session
def probe(session: Session, file: Path | None, settings: tuple[str, ...], ready: bool) -> None:
    """Ask the node of this configuration whether it is alive, as the image's health check does.

    Takes address and TLS from metrics.*. Exit code 3: it is not. 7: it does not answer.
    """
    # Loaded here: help needs no configuration.
    from quorate.config.addresses import WILDCARD_HOSTS, parse_address

    metrics = load_unjudged(file, settings).config.metrics
    if not metrics.listen:
        raise CliError("metrics.listen is empty: the node serves no probes", code=Exit.USAGE)
    host, port = parse_address(metrics.listen)
    if host in WILDCARD_HOSTS:
        host = "::1" if ":" in host else "127.0.0.1"
    path = "/readyz" if ready else "/livez"
    connection = _connection(host, port, metrics.tls)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        raise CliError(
            f"{metrics.listen} does not answer: {error}", code=Exit.UNREACHABLE
        ) from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise CliError(f"{path}: {text}", code=Exit.UNHEALTHY)
    session.show(Result("Probe", {"address": metrics.listen, "path": path, "answer": text}))


def _connection(host: str, port: int, is_secure: bool) -> http.client.HTTPConnection:
    if not is_secure:
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    # No secret is sent, and the certificate has the node's name, not this address. A probe must not
    # restart a node because its certificate has expired.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
