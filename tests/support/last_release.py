"""The last release: what this commit has to work together with.

It is the newest tag ``v*`` before this commit. As long as there is none, ``BEFORE_THE_FIRST`` is in
its place. ``QUORATE_LAST_RELEASE`` names any other commit, tag or branch.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHOICE = "QUORATE_LAST_RELEASE"
BEFORE_THE_FIRST = "dfc4424758f507e0756ab86458fd6e919091da76"
"""The oldest commit whose programs all changes of the protos since then have not broken."""


def last_release() -> str:
    """Return the commit of the last release; skip the test where no history can be had.

    That is in files that come without git, and in a shallow clone without the commit.

    Raises:
        AssertionError: This clone lacks the commit, so nothing can be compared.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("needs the history in git: these files are no clone")
    chosen = os.environ.get(CHOICE) or _newest_tag() or BEFORE_THE_FIRST
    found = _git("rev-parse", "--verify", "--quiet", f"{chosen}^{{commit}}")
    if found.returncode != 0 and _is_shallow():
        pytest.skip(f"needs {chosen}; this clone is shallow: git fetch --unshallow --tags")
    assert found.returncode == 0, (
        f"this clone has no commit {chosen}, the last release: fetch the whole history "
        f"(git fetch --unshallow --tags), or set {CHOICE} to a commit that it has"
    )
    return found.stdout.decode().strip()


def file_at(commit: str, path: str) -> str:
    """Return the text of a file of a commit."""
    return _done("show", f"{commit}:{path}").decode()


def names_below(commit: str, folder: str) -> list[str]:
    """Return the paths of the files and folders that a folder of a commit has."""
    return _done("ls-tree", "--name-only", commit, f"{folder}/").decode().split()


def checkout(commit: str, folder: Path) -> None:
    """Write the files of a commit below ``folder``, which exists. The clone is not changed."""
    archive = _done("archive", "--format=tar", commit)
    subprocess.run(["tar", "-xf", "-", "-C", str(folder)], input=archive, check=True)


def _is_shallow() -> bool:
    return _git("rev-parse", "--is-shallow-repository").stdout.strip() == b"true"


def _newest_tag() -> str:
    """The release that this commit is itself, is not the last one before it."""
    found = _git("describe", "--tags", "--match", "v*", "--abbrev=0", "HEAD^")
    return found.stdout.decode().strip() if found.returncode == 0 else ""


def _done(*arguments: str) -> bytes:
    done = _git(*arguments)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
