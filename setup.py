"""Adds the modules that mypyc compiles, if QUORATE_COMPILED=1; the rest is in pyproject.toml.

Only a wheel is ever compiled: an sdist, an editable install and every other command stay pure.
``[tool.quorate.compiled]`` of pyproject.toml lists the modules. QUORATE_OPT_LEVEL (0 to 3, 2 by
default) is the compiler's; a lower one compiles faster.
"""

from __future__ import annotations

import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def modules() -> list[str]:
    """Return the paths of the compiled modules, relative to the root.

    Raises:
        ValueError: A listed path does not exist.
    """
    table = PROJECT["tool"]["quorate"]["compiled"]
    for each in (*table["paths"], *table["left-out"]):
        if not (ROOT / each).exists():
            raise ValueError(f"[tool.quorate.compiled] names {each}, which is not there")
    found = {
        file
        for each in table["paths"]
        for file in ((ROOT / each).rglob("*.py") if (ROOT / each).is_dir() else [ROOT / each])
    }
    left = [ROOT / each for each in table["left-out"]]
    return sorted(
        str(file.relative_to(ROOT))
        for file in found
        if not any(file.is_relative_to(each) for each in left)
    )


class ParallelBuild(build_ext):
    """Compiles one C file per processor: nearly all of them belong to one extension."""

    def build_extensions(self) -> None:
        """Compile and link all extensions."""
        one_by_one = self.compiler.compile

        def compile_all(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
                done = list(threads.map(lambda each: one_by_one([each], **options), sources))
            return [name for names in done for name in names]

        self.compiler.compile = compile_all
        super().build_extensions()


def compiled() -> dict[str, Any]:
    """Return the arguments of ``setup`` for the compiled form."""
    requires = [*PROJECT["tool"]["quorate"]["compiled"]["requires"]]
    requires += PROJECT["project"]["dependencies"]  # mypy reads their types
    arguments: dict[str, Any] = {"setup_requires": requires}
    # The requirements are asked for before they are there; only the wheel itself needs mypyc.
    if "bdist_wheel" in sys.argv:
        from mypyc.build import mypycify

        arguments["cmdclass"] = {"build_ext": ParallelBuild}
        arguments["ext_modules"] = mypycify(
            modules(),
            opt_level=os.environ.get("QUORATE_OPT_LEVEL", "2"),
            debug_level="0",
            multi_file=True,
            group_name="quorate",
        )
    return arguments


setup(**(compiled() if os.environ.get("QUORATE_COMPILED") == "1" else {}))
