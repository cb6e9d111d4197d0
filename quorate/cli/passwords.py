"""Where the command line takes a password from: a file, standard input or a prompt.

Never from an argument: every user of a machine sees the arguments of all processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from quorate.cli.exits import CliError, Exit
from quorate.config.secret_files import SECRET_BYTES_MAX, read_secret
from quorum.errors import ConfigError

STANDARD_INPUT = Path("-")


def password_from(
    path: Path | None, prompt: str, *, flag: str = "--sasl-password-file", is_new: bool = False
) -> str:
    """Return a password: of a file (``-``: one line of standard input), else of a prompt.

    ``flag`` is the option that names the file. ``is_new``: the prompt asks twice.

    Raises:
        CliError: There is neither a file nor a terminal, or the file is no usable secret.
    """
    if path == STANDARD_INPUT:
        return _line_of_input()
    if path is not None:
        try:
            return read_secret(path, flag)
        except ConfigError as error:
            raise CliError(str(error), code=Exit.USAGE) from error
    if not sys.stdin.isatty():
        raise CliError(
            "there is no terminal to ask for the password on",
            hint=f"name a file of mode 0600 with {flag}, or - for standard input",
            code=Exit.USAGE,
        )
    text: str = click.prompt(prompt, hide_input=True, confirmation_prompt=is_new, err=True)
    return text


def _line_of_input() -> str:
    text = sys.stdin.readline(SECRET_BYTES_MAX).removesuffix("\n").removesuffix("\r")
    if not text or not text.isprintable():
        raise CliError(
            "standard input holds no password: one line of printable text", code=Exit.USAGE
        )
    return text
