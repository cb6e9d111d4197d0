"""What all commands share during one call: options, output and messages to the person."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result, render, stream_rows
from quorate.config.addresses import parse_address
from quorate.visible_text import visible

TIMEOUT_DEFAULT_S = 10.0


@dataclass(slots=True)
class Session:
    """The options that every command understands, and how it talks.

    Data goes to standard output, everything else to standard error.
    """

    output: str = "table"
    bootstrap: tuple[str, ...] = ()
    timeout_s: float = TIMEOUT_DEFAULT_S
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    sasl_user: str = ""
    sasl_password_file: Path | None = None
    sasl_token_file: Path | None = None
    sasl_password: str = field(default="", repr=False)
    """Of ``sasl_user``, once it was read or asked for."""
    context: str = ""
    """The context named; empty for the one in use."""
    writer: str = ""
    """Name of the writer on whose behalf the command writes; empty for none."""
    request_id: str = ""
    """Name of the writer's request; empty for none."""
    is_wide: bool = False
    """Whether a table shows every column."""
    is_quiet: bool = False
    is_colourless: bool = field(default_factory=lambda: bool(os.environ.get("NO_COLOR")))
    written: set[str] = field(default_factory=set)
    """Fields given on the command line, which the environment may not change."""

    def show(self, result: Result) -> None:
        """Write a result to standard output in the format asked for."""
        colour = not self.is_colourless and sys.stdout.isatty()
        render(result, self.output, sys.stdout, colour=colour, is_wide=self.is_wide)

    def stream(
        self, kind: str, fields: Mapping[str, object], rows: Iterable[Mapping[str, object]]
    ) -> None:
        """Write rows to standard output as they come; see ``output.stream_rows``."""
        stream_rows(kind, fields, rows, self.output, sys.stdout)

    def announce(self, text: str) -> None:
        """A remark for a person; silent with ``--quiet``."""
        if not self.is_quiet:
            click.echo(visible(text), err=True)

    def warn(self, text: str) -> None:
        """Why the result says less than it seems to; ``--quiet`` does not silence it."""
        click.echo(visible(f"warning: {text}"), err=True)

    def take_from_context(self) -> None:
        """Fill in what is not written from the context named; without one and without servers, from
        the one in use.

        Raises:
            CliError: There is no such context, or the contexts cannot be read.
        """
        if self.bootstrap and not self.context:
            return
        # Loaded here: most commands name their servers.
        from quorate.cli.contexts import contexts_path, load_contexts

        contexts = load_contexts(contexts_path())
        name = self.context or contexts.current
        if not name:
            return
        found = contexts.named(name)
        values: dict[str, object] = {
            "bootstrap": found.bootstrap,
            "timeout_s": found.timeout_s,
            "sasl_user": found.sasl_user,
            **{
                key: Path(path)
                for key in (
                    "tls_ca",
                    "tls_cert",
                    "tls_key",
                    "sasl_password_file",
                    "sasl_token_file",
                )
                if (path := getattr(found, key)) is not None
            },
        }
        for key, value in values.items():
            if value is not None and key not in self.written:
                setattr(self, key, value)

    @property
    def is_sasl(self) -> bool:
        """Whether the command shows a password or token, at a listener of its own."""
        return bool(self.sasl_user) or self.sasl_token_file is not None

    def check_credentials(self) -> None:
        """Refuse options for TLS, passwords and tokens that do not go together.

        Raises:
            CliError: One needs another, or excludes it.
        """
        problem = ""
        if bool(self.tls_key) != bool(self.tls_cert):
            problem = "--tls-cert and --tls-key belong together"
        elif self.sasl_password_file is not None and not self.sasl_user:
            problem = "--sasl-password-file needs --sasl-user"
        elif self.sasl_user and self.sasl_token_file is not None:
            problem = "--sasl-user and --sasl-token-file exclude each other"
        elif (self.sasl_user or self.sasl_token_file) and not (self.tls_ca or self.tls_cert):
            problem = "a password or token needs TLS: name --tls-ca"
        if problem:
            raise CliError(problem, code=Exit.USAGE)

    def servers(self) -> tuple[str, ...]:
        """The bootstrap servers given.

        Raises:
            CliError: There are none, or one is not host:port.
        """
        if not self.bootstrap:
            raise CliError(
                "no server to talk to",
                hint="name one with --bootstrap host:port, QUORATE_BOOTSTRAP or a context",
                code=Exit.USAGE,
            )
        for address in self.bootstrap:
            try:
                parse_address(address)
            except ValueError as error:
                raise CliError(f"--bootstrap: {error}", code=Exit.USAGE) from error
        return self.bootstrap

    @contextmanager
    def progress(self, label: str, total: float | None) -> Iterator[ProgressBar]:
        """A bar on standard error while something long runs; nothing when that is no terminal."""
        if self.is_quiet or not sys.stderr.isatty():
            yield ProgressBar(None)
            return
        # Loaded for a bar only: it takes 3.5 MB, and a server shows none.
        from quorate.cli.progress import progress_on

        with progress_on(label, total, is_colourless=self.is_colourless) as advance:
            yield ProgressBar(advance)


class ProgressBar:
    """A bar that may not exist."""

    def __init__(self, advance: Callable[[float], None] | None) -> None:
        self._advance = advance
        self._reached = 0.0

    def advance(self, amount: float) -> None:
        """So much more is done."""
        if self._advance is not None:
            self._advance(amount)

    def reach(self, amount: float) -> None:
        """So much is done altogether."""
        amount, self._reached = amount - self._reached, amount
        self.advance(amount)
