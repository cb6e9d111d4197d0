"""Write the source tree of the distribution ``quorate-client``: one package, without the node.

    python deploy/client/build.py DIRECTORY

The modules are those of ``quorate.client``, with the stubs of ``quorum.v1`` and the pure modules of
``quorum`` that they need. Only the names of packages change. DIRECTORY must not exist or be empty.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = "quorate_client"
PURE = ("digest", "log_position", "scram", "supervisor")
"""Modules of ``quorum`` that need the standard library only."""
MODULES = {
    "quorate/client": PACKAGE,
    "quorate/client/results": f"{PACKAGE}/results",
    "quorum/v1": f"{PACKAGE}/v1",
    **{f"quorum/{name}.py": f"{PACKAGE}/{name}.py" for name in PURE},
}
"""Where each file or folder goes."""
PURE_NAMES = (
    (r"\bquorate\.client\b", PACKAGE),
    # Not the names of services and messages, which are on the wire: they begin with a capital.
    (r"\bquorum\.v1(?= import |\.[a-z])", f"{PACKAGE}.v1"),
    (rf"\bquorum\.({'|'.join(PURE)})\b", rf"{PACKAGE}.\1"),
)
FOREIGN_IMPORT = re.compile(
    r"^\s*(?:from|import) (quorate|quorum|statemachine|snapshot|metrics)[. ]", re.MULTILINE
)


def renamed(text: str) -> str:
    """Return the source with the names of its new packages."""
    for pattern, name in PURE_NAMES:
        text = re.sub(pattern, name, text)
    return text


def write_tree(directory: Path) -> None:
    """Write the source tree into ``directory``.

    Raises:
        FileExistsError: It has files.
        ValueError: A module imports something of ours that is not in the distribution.
    """
    if directory.exists() and any(directory.iterdir()):
        raise FileExistsError(f"{directory} is not empty")
    for source, target in MODULES.items():
        place = ROOT / source
        files = [place] if place.is_file() else sorted(place.iterdir())
        for file in files:
            if file.suffix not in (".py", ".pyi"):
                continue
            goal = directory / target if place.is_file() else directory / target / file.name
            goal.parent.mkdir(parents=True, exist_ok=True)
            text = renamed(file.read_text(encoding="utf-8"))
            if found := FOREIGN_IMPORT.search(text):
                raise ValueError(f"{file.relative_to(ROOT)}: {found.group().strip()} is left out")
            goal.write_text(text, encoding="utf-8")
    (directory / PACKAGE / "py.typed").touch()
    for name in ("README.md", "LICENSE"):
        shutil.copyfile((HERE if name == "README.md" else ROOT) / name, directory / name)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    settings = (HERE / "pyproject.toml").read_text("utf-8")
    settings = settings.replace('version = "0"', f'version = "{version}"')
    (directory / "pyproject.toml").write_text(settings, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python deploy/client/build.py DIRECTORY")
    try:
        write_tree(Path(sys.argv[1]))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
