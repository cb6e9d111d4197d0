"""``quorate certs``: an authority for one cluster, and certificates of its nodes and callers."""

from __future__ import annotations

import datetime
import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quorate.certificates.errors import (
    CertificateExistsError,
    CertificateFolderError,
    CertificateKeyModeError,
    CertificateNameError,
)
from quorate.certificates.names import Kind
from quorate.cli.command import LocalGroup, pass_session
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session

if TYPE_CHECKING:
    from quorate.certificates.authority import Issued

FC = TypeVar("FC", bound="Callable[..., Any] | click.Command")

_FOLDER = click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("certs"),
    show_default=True,
    help="The folder of the authority.",
)


def _days(default: int, text: str = "How long it is valid.") -> Callable[[FC], FC]:
    return click.option(
        "--days",
        type=WholeNumber(min=1, max=36500),
        default=default,
        show_default=True,
        help=text,
    )


@click.group(cls=LocalGroup)
def certs() -> None:
    """Make an authority for one cluster, and certificates of its nodes and callers.

    Keep the folder on a machine that is no node, and copy to each machine only its own two files
    and ca.pem. Whoever reads ca.key can become any node.
    """


@certs.command()
@_FOLDER
@click.option("--name", "title", default="quorate authority", help="The authority's common name.")
@click.option(
    "--node-name",
    default="node-{id}.quorate.internal",
    show_default=True,
    help="What certificates of voters carry: tls.node_name.",
)
@click.option(
    "--observer-name",
    default="observer-{id}.quorate.internal",
    show_default=True,
    help="What certificates of observers carry: tls.observer_name.",
)
@_days(3650)
@pass_session
def init(
    session: Session, folder: Path, title: str, node_name: str, observer_name: str, days: int
) -> None:
    """Make the authority: ca.pem, ca.key and authority.json."""
    with _reported(folder):
        from quorate.certificates.authority import make_authority

        made = make_authority(
            folder, title=title, node_name=node_name, observer_name=observer_name,
            days=days, now_ms=_now_ms(),
        )  # fmt: skip
    session.show(
        Result(
            "AuthorityCreated",
            {
                "tls_ca": str(made),
                "key": str(made.with_suffix(".key")),
                "node_name": node_name,
                "observer_name": observer_name,
            },
        )
    )


@certs.command()
@click.argument("kind", type=click.Choice([each.value for each in Kind]))
@click.argument("name")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME|ADDRESS",
    help="Another name or address; a node needs each that others reach it by. Repeatable.",
)
@_FOLDER
@_days(397)
@pass_session
def issue(
    session: Session, kind: str, name: str, hosts: tuple[str, ...], folder: Path, days: int
) -> None:
    """Make a key and a certificate for the KIND called NAME.

    NAME is the node.id of a voter or observer. For an operator or client it is the principal, as
    ACLs and security.operators have it, without "User:".
    """
    role = Kind(kind)
    if role.is_node and not hosts:
        raise CliError(
            f"no client could verify this {role}",
            hint="--host names it, with the host of its listeners",
            code=Exit.USAGE,
        )
    with _reported(folder):
        from quorate.certificates.authority import Authority

        made = Authority(folder).issue(role, name, hosts, days=days, now_ms=_now_ms())
    session.show(Result("CertificateIssued", {"role": kind, **_fields(made, folder)}))
    if role is Kind.OPERATOR:
        session.announce(f'note: a node takes it as operator with operators = ["User:{name}"]')


@certs.command()
@click.argument("name")
@_FOLDER
@_days(397)
@pass_session
def renew(session: Session, name: str, folder: Path, days: int) -> None:
    """Replace NAME.pem by one that is valid from now on; key and names stay.

    Copy it to its node, which uses it from the next connection on, without a restart.
    """
    _check_name(name, folder)
    with _reported(folder):
        from quorate.certificates.authority import Authority

        made = Authority(folder).renew(name.removesuffix(".pem"), days=days, now_ms=_now_ms())
    session.show(Result("CertificateRenewed", _fields(made, folder)))


@certs.command()
@click.argument("name")
@_FOLDER
@_days(3650, "How long the list counts as current.")
@pass_session
def revoke(session: Session, name: str, folder: Path, days: int) -> None:
    """Put the certificates of NAME on the list crl.pem, also those from before a renewal.

    Copy crl.pem to every node, to the file that tls.crl_file names; nothing is restarted. The
    certificate and its key move into the folder former, so NAME can be issued another key.
    """
    _check_name(name, folder)
    with _reported(folder):
        from quorate.certificates.authority import Authority

        made = Authority(folder).revoke(name.removesuffix(".pem"), days=days, now_ms=_now_ms())
    session.show(
        Result(
            "CertificateRevoked",
            {
                "crl": str(made.listed),
                "revoked": [str(each) for each in made.certificates],
                "principal": f"User:{made.names[0]}",
                "names": list(made.names),
            },
        )
    )
    session.announce(f"note: copy {made.listed} to every node, as tls.crl_file names it")


def _check_name(name: str, folder: Path) -> None:
    if Path(name).name != name:
        raise CliError(f"{name!r} is no name of a certificate in {folder}", code=Exit.USAGE)


def _fields(made: Issued, folder: Path) -> dict[str, object]:
    end = datetime.datetime.fromtimestamp(made.not_after_ms / 1000, datetime.UTC)
    return {
        "certificate": str(made.certificate),
        "key": str(made.key),
        "authorities": str(folder / "ca.pem"),
        "principal": f"User:{made.names[0]}",
        "names": list(made.names),
        "not_after": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _now_ms() -> int:
    return int(time.time() * 1000)


@contextmanager
def _reported(folder: Path) -> Iterator[None]:
    """Give the errors their exit codes, and check that the extra is there.

    Raises:
        CliError: Something failed.
    """
    if importlib.util.find_spec("cryptography") is None:
        raise CliError(
            "cryptography is not installed", hint="pip install 'quorate[certs]' brings it"
        )
    try:
        yield
    except CertificateExistsError as error:
        raise CliError(
            str(error),
            hint="`quorate certs renew` prolongs a certificate; remove a key without certificate",
            code=Exit.CONFLICT,
        ) from error
    except (CertificateNameError, CertificateKeyModeError) as error:
        raise CliError(str(error), code=Exit.USAGE) from error
    except CertificateFolderError as error:
        has_authority = (folder / "ca.pem").exists()
        hint = "`quorate certs init` makes an authority, --dir names its folder"
        raise CliError(
            str(error), hint="" if has_authority else hint, code=Exit.NOT_FOUND
        ) from error
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}") from error
