"""Loads two libraries without what their packages import and a node never uses.

``prometheus_client`` imports its HTTP servers and clients, ``crc32c`` a command line and the
metadata of installations. With what those import in turn (``http``, ``email``, ``urllib``,
``wsgiref``, ``html``, ``zipfile``, ``argparse``) that is 5 MB in every node.

A package's ``__init__`` runs at the first request for a name that is not in the table below, or if
the library has moved one that is. So every program that works with the whole package works here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Final

PLACES: Final[Mapping[str, Mapping[str, str]]] = {
    "crc32c": {"crc32c": "_crc32c"},
    "prometheus_client": {
        "CollectorRegistry": "registry",
        "Counter": "metrics",
        "GCCollector": "gc_collector",
        "Histogram": "metrics",
        "Metric": "metrics_core",
        "PlatformCollector": "platform_collector",
        "ProcessCollector": "process_collector",
        "disable_created_metrics": "metrics",
    },
}
"""Package -> name that a node uses -> the module of the package that defines it."""


def load_lightly(places: Mapping[str, Mapping[str, str]] = PLACES) -> None:
    """Make the packages importable without running their ``__init__``. Call it before they are.

    A package that is loaded already stays as it is; one that is not installed is left out.
    """
    for package, names in places.items():
        if package in sys.modules:
            continue
        spec = find_spec(package)
        if spec is not None and spec.loader is not None:
            sys.modules[package] = _bare(spec, names)


def _bare(spec: ModuleSpec, names: Mapping[str, str]) -> ModuleType:
    """Return the package without what its ``__init__`` defines, which is found when asked for."""
    module = module_from_spec(spec)

    def find(name: str) -> object:
        try:
            # Python asks for a module of the package in the same way.
            found: object = import_module(f"{spec.name}.{names.get(name, name)}")
            if name in names:
                found = getattr(found, name)
        except (ImportError, AttributeError):
            pass
        else:
            setattr(module, name, found)
            return found
        # Removed first: what is missing in the whole package is missing.
        if vars(module).pop("__getattr__", None) is not None and spec.loader is not None:
            spec.loader.exec_module(module)
        return getattr(module, name)

    module.__dict__["__getattr__"] = find
    return module
