"""Options that tests anywhere below may ask for. Options must live in this top file."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

pytest_plugins = ["tests.support.refusals"]

# How long one example takes says something about the machine, and nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


# The contexts of whoever runs the tests are not those of the commands under test.
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("quorate")
    group.addoption(
        "--rewrite",
        action="store_true",
        help="replace the expected output of scenario files by what was seen; read the diff",
    )
    group.addoption(
        "--sim-runs",
        type=int,
        default=None,
        metavar="N",
        help="simulate N seeds per profile instead of the short default",
    )
    group.addoption(
        "--sim-seed",
        type=int,
        default=None,
        metavar="SEED",
        help="simulate this one seed and print its events",
    )
    group.addoption(
        "--soak-minutes",
        type=float,
        default=None,
        metavar="N",
        help="let the soak runs of the nightly lane take so long (default: an hour)",
    )
    group.addoption(
        "--refusals",
        default=None,
        metavar="FILE",
        help="write down which refusals services sent in this run",
    )
