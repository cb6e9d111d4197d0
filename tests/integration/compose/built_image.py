"""deploy/Dockerfile carried out without a container engine, over a copy of this machine's root.

A stage is an overlay, so the machine itself stays as it is. What differs from an image: the base is
this machine with this interpreter; the locked dependencies are those of the running environment,
and not downloaded; nothing is compiled. Every other instruction is carried out as it is written,
and an unknown one fails.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.image import ROOT, instructions

_NOT_CARRIED_OUT = {
    "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD",
}  # fmt: skip
"""They describe a container and change nothing in the image."""
_BUILD_BACKEND = "setuptools"
_BASE_BIN = Path(os.path.realpath(sys._base_executable)).parent  # type: ignore[attr-defined]


def build(folder: Path) -> Path:
    """Return the root of the last stage. ``folder`` can hold overlays, as a tmpfs can."""
    context = folder / "context"
    _copy_sources(context)
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for name, rest in instructions():
        if name == "FROM":
            words = rest.split()
            stage = Stage(folder / f"stage{len(stages)}")
            stages[words[-1] if "AS" in words else ""] = stage
            continue
        assert stage is not None
        if name == "RUN":
            stage.run(rest)
        elif name == "WORKDIR":
            stage.enter(rest)
        elif name == "COPY":
            source, target = [word for word in rest.split() if not word.startswith("--")]
            found = re.search(r"--from=(\S+)", rest)
            stage.copy((stages[found[1]].root if found else context) / source.lstrip("/"), target)
        else:
            assert name in _NOT_CARRIED_OUT, f"the rehearsal does not know {name}"
    assert stage is not None
    return stage.root


class Stage:
    """One stage of the build."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        for each in ("root", "upper", "work"):
            (folder / each).mkdir(parents=True)
        options = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
        _run("mount", "-t", "overlay", "overlay", "-o", options, str(self.root))
        for each in ("proc", "dev"):
            _run("mount", "--rbind", f"/{each}", f"{self.root}/{each}")
        # Here it may be a mount, which an overlay does not show.
        (self.root / "etc/hosts").touch()
        self._folder = "/"
        self._make_python_reachable()

    def enter(self, folder: str) -> None:
        self._folder = folder
        self._inside(folder).mkdir(parents=True, exist_ok=True)

    def copy(self, source: Path, target: str) -> None:
        place = self._inside(target)
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, place)

    def run(self, line: str) -> None:
        if line.startswith("apt-get"):
            return
        for command in line.split(" && "):
            if "--requirement" in command:
                self._install_locked()
            else:
                command = command.replace("QUORATE_COMPILED=1", "QUORATE_COMPILED=0")
                self._shell(command.replace("pip install", "pip install --no-build-isolation"))

    def _shell(self, command: str) -> None:
        environment = {
            "PATH": f"{_BASE_BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "PYTHONPATH": "/backend",
        }
        words = ["chroot", str(self.root), "/bin/sh", "-ec", f"cd {self._folder}; {command}"]
        _run(*words, environment=environment)

    def _inside(self, path: str) -> Path:
        return self.root / str(Path(self._folder, path)).lstrip("/")

    def _install_locked(self) -> None:
        """Copy the distributions that the lock names from the running environment."""
        text = self._inside("requirements.lock").read_text(encoding="utf-8")
        (place,) = (self.root / "opt/quorate/lib").glob("python*/site-packages")
        for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE):
            _copy_distribution(name, place)
        _copy_distribution(_BUILD_BACKEND, self.root / "backend")

    def _make_python_reachable(self) -> None:
        """A base image has ``python`` for every user; here it may be in a home folder."""
        prefix = Path(os.path.realpath(sys.base_prefix))
        inside = self.root / str(prefix).lstrip("/")
        if prefix.stat().st_dev != Path("/").stat().st_dev:
            inside.mkdir(parents=True, exist_ok=True)
            _run("mount", "--bind", str(prefix), str(inside))
        for each in prefix.parents:
            place = self.root / str(each).lstrip("/")
            place.chmod(place.stat().st_mode | 0o055)
        if not (_BASE_BIN / "python").exists():
            (self.root / "usr/local/bin/python").symlink_to(os.path.realpath(sys.executable))


def _copy_sources(target: Path) -> None:
    """What a build sends: the files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def _copy_distribution(name: str, place: Path) -> None:
    """One that is not installed here is for another release of Python, or another system."""
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return
    for file in found.files or ():
        source = Path(str(found.locate_file(file)))
        if ".." not in file.parts and source.is_file() and source.suffix != ".pyc":
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place / file)


def _run(*words: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
