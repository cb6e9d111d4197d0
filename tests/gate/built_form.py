"""``python -m tests.gate.built_form compiled|pure FILE``: is an archive what it should be?

Exit code 1 and one line per module if a compiled wheel lacks the extension of a module that
pyproject.toml lists, or has one that is not listed, or if a pure one has any extension.
"""

from __future__ import annotations

import runpy
import sys
import tarfile
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
GROUP = "quorate__mypyc"
"""The extension with the code of all modules; those of the modules only name it."""
EXTENSIONS = (".so", ".pyd", ".dylib")
OUTPUT = (*EXTENSIONS, ".c", ".h", ".o")


def listed_modules(root: Path = ROOT) -> list[str]:
    """Return the paths of the modules that the compiled form compiles, without their suffix."""
    with mock.patch("setuptools.setup"):
        listed: list[str] = runpy.run_path(str(root / "setup.py"))["modules"]()
    return [each.removesuffix(".py") for each in listed]


def names_in(archive: Path) -> list[str]:
    """Return the names of all files of a wheel or an sdist."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            return wheel.namelist()
    with tarfile.open(archive) as sdist:
        return sdist.getnames()


def problems(form: str, names: Iterable[str], listed: Collection[str]) -> list[str]:
    """Return a sentence for each module that is not as ``form`` (compiled or pure) says."""
    if form == "pure":
        return [f"{each} is compiled" for each in names if each.endswith(OUTPUT)]
    found = {each.split(".", 1)[0] for each in names if each.endswith(EXTENSIONS)}
    # The extension of a package is its __init__.
    wanted = {*listed, GROUP}
    return [f"{each} is not compiled" for each in sorted(wanted - found)] + [
        f"{each} is compiled, and is not listed" for each in sorted(found - wanted)
    ]


def main(form: str, archive: str) -> int:
    """Check one archive; return the exit code."""
    listed = listed_modules()
    found = problems(form, names_in(Path(archive)), listed)
    for each in found:
        print(each)
    if not found:
        count = len(listed) if form == "compiled" else 0
        print(f"{Path(archive).name} is {form}: {count} compiled modules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
