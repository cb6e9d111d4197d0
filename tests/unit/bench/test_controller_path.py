"""The benchmark of the controller runs the controller as it is."""

from __future__ import annotations

from bench.controller_path import measure


def test_every_command_is_answered() -> None:
    seconds, succeeded = measure(commands=96, group=64)
    assert succeeded == 96
    assert seconds > 0
