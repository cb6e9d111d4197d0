"""Say in which form Quorate and its interpreter were built.

Both forms change every figure by a tenth or more, so a run of a slower form says so first.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from importlib import machinery
from types import ModuleType

from quorum import batch_decode
from quorum.core.replication import commitment

OPTIMISED = "--enable-optimizations"
COMPILED: tuple[ModuleType, ...] = (batch_decode, commitment)
"""Modules that every compiled wheel has compiled."""
UNKNOWN_FORM = "these figures do not say how they were built"


def is_compiled(modules: tuple[ModuleType, ...] = COMPILED) -> bool:
    """Whether all of these modules were loaded from shared libraries."""
    suffixes = tuple(machinery.EXTENSION_SUFFIXES)
    return all((module.__file__ or "").endswith(suffixes) for module in modules)


def shortcomings(config_args: str | None, *, compiled: bool) -> list[str]:
    """Return a sentence for each optimisation that a build lacks.

    ``config_args`` are the arguments of CPython's ``configure``; None if it does not know them.
    """
    found = []
    if OPTIMISED not in (config_args or ""):
        found.append(f"CPython {platform.python_version()} was configured without {OPTIMISED}")
    if not compiled:
        found.append("Quorate is not compiled by mypyc")
    return found


def build_form() -> dict[str, object]:
    """Return the form for the JSON: ``unoptimised`` has the sentences, none for the fast form."""
    compiled = is_compiled()
    arguments = sysconfig.get_config_var("CONFIG_ARGS")
    return {"compiled": compiled, "unoptimised": shortcomings(arguments, compiled=compiled)}


def first_line(unoptimised: list[str]) -> str:
    """Return the line that a report of these shortcomings begins with; empty if there are none."""
    return f"UNOPTIMISED BUILD: {'; '.join(unoptimised)}." if unoptimised else ""


def print_form() -> None:
    """Print ``first_line`` of this process to standard error, if there is one."""
    line = first_line(shortcomings(sysconfig.get_config_var("CONFIG_ARGS"), compiled=is_compiled()))
    if line:
        print(line, file=sys.stderr, flush=True)
