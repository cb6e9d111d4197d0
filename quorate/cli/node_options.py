"""Options of commands that read a node's configuration.

Sections of a configuration bring checkpoints and records with them: loaded when they are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quorate.cli.completions import settings as completed
from quorum.errors import ConfigError

if TYPE_CHECKING:
    from quorate.config.load import LoadedConfig

Function = TypeVar("Function", bound=Callable[..., Any])


def config_options(function: Function) -> Function:
    """Add ``--config`` and ``--set``, handed over as ``file`` and ``settings``."""
    decorate_set = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        shell_complete=completed,
        help="One setting; wins over environment and file. Repeatable.",
    )
    decorate_file = click.option(
        "--config",
        "file",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="QUORATE_CONFIG",
        help="TOML file, or QUORATE_CONFIG.",
    )
    return decorate_file(decorate_set(function))


def load(file: Path | None, settings: tuple[str, ...]) -> LoadedConfig:
    """The configuration from file, this process's environment and flags.

    Raises:
        ConfigError: With every problem found.
    """
    from quorate.config.load import load_config

    return load_config(file, environment=os.environ, flags=settings)


def load_unjudged(file: Path | None, settings: tuple[str, ...]) -> LoadedConfig:
    """Like ``load`` for commands that need only a part of it: values are not evaluated.

    Raises:
        ConfigError: Something could not be read at all.
    """
    from quorate.config.load import merge

    loaded, problems = merge(file, environment=os.environ, flags=settings)
    if problems:
        raise ConfigError(problems)
    return loaded
