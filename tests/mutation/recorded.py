"""The lines that each test executes: recorded once, and kept for the next run.

Recording takes longer than running a hundred mutants. The recording of a test is valid while its
file and all files that it imports, directly or not, are unchanged.
"""

from __future__ import annotations

import ast
import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_RUNNERS = (Path("simulation/scenario/runner.py"), Path("simulation/lanes.py"))
"""The files that run a scenario, and a seed."""
Lines = dict[str, frozenset[int]]
"""Lines, by file relative to the root of the checkout."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One test without a mutant."""

    digest: str
    """Digest of its file and of all files that it may import."""
    cpu_seconds: float
    lines: Lines
    """Lines that it executes."""


class Recordings:
    """The recordings of a checkout's tests."""

    def __init__(self, root: Path, file: Path) -> None:
        """Read ``file``; start empty if it is missing or unreadable."""
        self._file = file
        self._root = root
        self._imports: dict[Path, list[Path]] = {}
        self._digests: dict[Path | None, str] = {}
        try:
            self._kept: dict[str, Recorded] = pickle.loads(file.read_bytes())
        except (OSError, pickle.UnpicklingError, AttributeError, EOFError):
            self._kept = {}

    def find(self, name: str, path: Path | None) -> Recorded | None:
        """Return the recording of a test in ``path``; None if a file has changed since."""
        found = self._kept.get(name)
        return found if found is not None and found.digest == self._digest(path) else None

    def keep(self, name: str, path: Path | None, cpu_seconds: float, lines: Lines) -> Recorded:
        """Store the recording of a test in ``path``."""
        self._kept[name] = found = Recorded(self._digest(path), cpu_seconds, lines)
        return found

    def save(self) -> None:
        """Write all recordings for the next run."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        partial.write_bytes(pickle.dumps(self._kept))
        partial.replace(self._file)

    def _digest(self, path: Path | None) -> str:
        """Return the digest of a file and its imports; of a scenario or seed, of its runners."""
        if path not in self._digests:
            files = set[Path]() if path is None else {path}
            is_python = path is not None and path.suffix == ".py"
            for begin in files if is_python else map(self._root.joinpath, _RUNNERS):
                files = files | self._reached(begin)
            found = hashlib.sha256()
            for each in sorted(files):
                found.update(f"{each.name}\0".encode() + each.read_bytes())
            self._digests[path] = found.hexdigest()
        return self._digests[path]

    def _reached(self, begin: Path) -> set[Path]:
        reached, waiting = set[Path](), [begin]
        while waiting:
            path = waiting.pop()
            if path in reached:
                continue
            reached.add(path)
            if path not in self._imports:
                self._imports[path] = [*self._imported(path)]
            waiting += self._imports[path]
        return reached

    def _imported(self, path: Path) -> Iterator[Path]:
        """Yield the files below the root that a file imports."""
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
            elif isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            else:
                continue
            for name in names:
                stem = self._root.joinpath(*name.split("."))
                yield from filter(Path.is_file, (stem.with_suffix(".py"), stem / "__init__.py"))
