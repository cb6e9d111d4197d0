"""``quorate version``: the versions of the program, of its formats, and of its feature levels."""

from __future__ import annotations

import platform

import click
import google.protobuf
import grpc

from quorate import __version__
from quorate.cli.command import LocalCommand, pass_session
from quorate.cli.output import Result
from quorate.cli.session import Session
from quorate.features import SUPPORTED_FEATURES


@click.command(cls=LocalCommand)
@pass_session
def version(session: Session) -> None:
    """Print versions of the program, its libraries and the features it supports."""
    session.show(
        Result(
            "Version",
            {
                "quorate": __version__,
                "python": platform.python_version(),
                "grpc": grpc.__version__,
                "protobuf": google.protobuf.__version__,
            },
            rows=[
                {"feature": feature.name, "min": feature.min_level, "max": feature.max_level}
                for feature in SUPPORTED_FEATURES
            ],
            columns=("feature", "min", "max"),
        )
    )
