"""``quorate context``: name clusters, and choose one of them."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.command import ContextCommand, LocalGroup, pass_session
from quorate.cli.completions import contexts as completed
from quorate.cli.contexts import Context, Contexts, contexts_path, load_contexts, save_contexts
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.passwords import STANDARD_INPUT
from quorate.cli.session import Session


@click.group(cls=LocalGroup)
def context() -> None:
    """Name clusters, and choose the one that commands reach.

    A context counts where neither --bootstrap nor QUORATE_BOOTSTRAP names a cluster, or where
    --context or QUORATE_CONTEXT names it. Options that are written win over it.
    """


@context.command(cls=ContextCommand)
@click.argument("name")
@click.option("--use", is_flag=True, help="Also use it from now on.")
@click.option("--replace", is_flag=True, help="Replace a context of that name.")
@pass_session
def add(session: Session, name: str, use: bool, replace: bool) -> None:
    """Add the context NAME, with the --bootstrap, --tls-*, --sasl-* and --timeout given.

    The first context is also used from now on.
    """
    path, contexts = _loaded()
    if not name or name != name.strip() or not name.isprintable():
        raise CliError(f"{name!r} is no name for a context", code=Exit.USAGE)
    if name in contexts.by_name and not replace:
        raise CliError(
            f"the context {name} exists", hint="--replace replaces it", code=Exit.CONFLICT
        )
    session.check_credentials()
    made = Context(
        bootstrap=session.servers(),
        tls_ca=_absolute(session.tls_ca),
        tls_cert=_absolute(session.tls_cert),
        tls_key=_absolute(session.tls_key),
        sasl_user=session.sasl_user or None,
        sasl_password_file=_absolute(session.sasl_password_file),
        sasl_token_file=_absolute(session.sasl_token_file),
        timeout_s=session.timeout_s if "timeout_s" in session.written else None,
    )
    current = name if use or not contexts.by_name else contexts.current
    save_contexts(path, Contexts(current, {**contexts.by_name, name: made}))
    session.show(Result("ContextAdded", _fields(name, made, current)))


@context.command()
@click.argument("name", shell_complete=completed)
@pass_session
def use(session: Session, name: str) -> None:
    """Let commands reach the cluster of the context NAME from now on."""
    path, contexts = _loaded()
    found = contexts.named(name)
    save_contexts(path, Contexts(name, contexts.by_name))
    session.show(Result("ContextUsed", _fields(name, found, name)))


@context.command("list")
@pass_session
def list_contexts(session: Session) -> None:
    """List all contexts."""
    _, contexts = _loaded()
    rows = [
        _fields(name, each, contexts.current) for name, each in sorted(contexts.by_name.items())
    ]
    session.show(Result("ContextList", rows=rows, columns=("is_current", "name", "bootstrap")))


@context.command()
@click.argument("name", required=False, shell_complete=completed)
@pass_session
def show(session: Session, name: str | None) -> None:
    """Show the context NAME, or the one in use."""
    path, contexts = _loaded()
    if name is None and not contexts.current:
        raise CliError(f"no context is in use in {path}", code=Exit.NOT_FOUND)
    name = name or contexts.current
    session.show(Result("Context", _fields(name, contexts.named(name), contexts.current)))


@context.command()
@click.argument("name", shell_complete=completed)
@pass_session
def remove(session: Session, name: str) -> None:
    """Remove the context NAME; if it was in use, none is in use then."""
    path, contexts = _loaded()
    found = contexts.named(name)
    rest = {each: of for each, of in contexts.by_name.items() if each != name}
    current = "" if contexts.current == name else contexts.current
    save_contexts(path, Contexts(current, rest))
    session.show(Result("ContextRemoved", _fields(name, found, current)))


def _loaded() -> tuple[Path, Contexts]:
    path = contexts_path()
    return path, load_contexts(path)


def _absolute(path: Path | None) -> str | None:
    """Commands may be given in another folder later.

    Raises:
        CliError: It is standard input, which a later command cannot read.
    """
    if path == STANDARD_INPUT:
        raise CliError("a context needs a file, not standard input", code=Exit.USAGE)
    return str(path.absolute()) if path is not None else None


def _fields(name: str, each: Context, current: str) -> dict[str, object]:
    return {
        "name": name,
        "is_current": name == current,
        "bootstrap": list(each.bootstrap),
        "tls_ca": each.tls_ca,
        "tls_cert": each.tls_cert,
        "tls_key": each.tls_key,
        "sasl_user": each.sasl_user,
        "sasl_password_file": each.sasl_password_file,
        "sasl_token_file": each.sasl_token_file,
        "timeout_s": each.timeout_s,
    }
