"""``quorate version``: the versions of the program, of its formats, and of its feature levels."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

import click

from quorate import __version__
from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.output import Result
from quorate.cli.session import Session


@click.command(cls=LocalCommand)
@pass_session
def version(session: Session) -> None:
    """Print versions of the program, its libraries and the features it supports."""
    # Loaded here: help needs no feature levels.
    from statemachine.feature_levels import RELEASES, supported_range

    session.show(
        Result(
            "Version",
            {
                "quorate": __version__,
                "python": platform.python_version(),
                "grpc": installed("grpcio"),
                "protobuf": installed("protobuf"),
            },
            rows=[
                {"feature": name, "min": low, "max": high}
                for name in sorted(RELEASES)
                for low, high in [supported_range(name)]
            ],
            columns=("feature", "min", "max"),
        )
    )
