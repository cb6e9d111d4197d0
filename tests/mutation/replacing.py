"""Replaces the code of functions by a mutant's, in a process that has imported all modules.

Functions keep their identity, so it does not matter who has imported or wrapped them.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FunctionType

Key = tuple[str, str, int]
"""File, qualified name and first line of a code object."""


class Functions:
    """All functions of a folder that this process has imported, and their caches."""

    def __init__(self, folder: Path) -> None:
        """Find the functions; those imported later are missing."""
        self._by_key: dict[Key, list[FunctionType]] = {}
        self._caches = []
        for each in gc.get_objects():
            if type(each) is FunctionType and _is_below(each, folder):
                code = each.__code__
                key = (code.co_filename, code.co_qualname, code.co_firstlineno)
                self._by_key.setdefault(key, []).append(each)
            elif isinstance(each, functools._lru_cache_wrapper):
                wrapped = each.__wrapped__
                if isinstance(wrapped, FunctionType) and _is_below(wrapped, folder):
                    self._caches.append(each)

    def replace(self, path: Path, codes: Mapping[tuple[str, int], CodeType]) -> int:
        """Replace the code of this file's functions; return how many were replaced."""
        replaced = 0
        for (name, line), code in codes.items():
            for function in self._by_key.get((str(path), name, line), ()):
                function.__code__ = code
                replaced += 1
        for each in self._caches:
            each.cache_clear()
        return replaced


def _is_below(function: FunctionType, folder: Path) -> bool:
    return function.__code__.co_filename.startswith(f"{folder}/")
