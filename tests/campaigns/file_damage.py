"""Damages real files of a node's data directory: single files, pairs, swaps and renames."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quorum.log.layout import (
    LOG_START_NAME,
    META_PROPERTIES_NAME,
    PARTITION_METADATA_NAME,
    QUORUM_STATE_NAME,
    WATERMARK_NAMES,
    partition_directory,
)
from snapshot.naming import parse_name

SIDE_NAMES = ("leader-epoch-checkpoint", PARTITION_METADATA_NAME, LOG_START_NAME, *WATERMARK_NAMES)
IDENTITY_NAMES = (META_PROPERTIES_NAME, QUORUM_STATE_NAME)
SUFFIXES = (".log", ".checkpoint", ".digest", ".index")
MANNERS = ("delete", "zero", "empty", "flip", "truncate", "foreign")
TOGETHER = ("pair", "swap", "rename", "copy")
_TAIL_SHARE = 0.5
_TAIL_BYTES = 600
_CRITICAL_SHARE = 0.5


def kind_of(name: str) -> str:
    """Return the kind of a file: its suffix if the name begins with an offset, else its name."""
    suffix = Path(name).suffix
    return suffix if suffix in SUFFIXES else name


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage of one file, as its content before and after."""

    path: Path
    manner: str
    before: bytes | None
    """None if the file did not exist."""
    after: bytes | None
    """None if the file was deleted."""
    is_other_mark: bool = False
    """Whether the file now holds the intact content of the other copy of the durable mark."""

    @property
    def kind(self) -> str:
        return kind_of(self.path.name)

    def __str__(self) -> str:
        return f"{self.manner} {self.path.name}"


def files_of(data_dir: Path) -> list[Path]:
    """Return every file that a node writes and reads again, except the bootstrap checkpoint."""
    directory = partition_directory(data_dir)
    found = [data_dir / META_PROPERTIES_NAME]
    for path in sorted(directory.iterdir()):
        parsed = parse_name(path.name)
        is_bootstrap = parsed is not None and parsed[0].offset == 0
        is_ours = path.suffix in SUFFIXES or path.name in (*SIDE_NAMES, QUORUM_STATE_NAME)
        if is_ours and not is_bootstrap and path.is_file():
            found.append(path)
    return [path for path in found if path.exists()]


def newest_segment(data_dir: Path) -> Path:
    """Return the active segment."""
    return sorted(partition_directory(data_dir).glob("*.log"))[-1]


class Damager:
    """Damages files of one node. ``others`` are the data directories of the other nodes."""

    def __init__(self, data_dir: Path, others: Sequence[Path], rng: random.Random) -> None:
        self._data_dir = data_dir
        self._others = others
        self._rng = rng

    def some(self, manner: str) -> list[Damage]:
        """Do one damage and return what was changed; [] if there is no file for it."""
        acts: dict[str, Callable[[], list[Damage]]] = {
            "pair": self._pair,
            "swap": self._swap,
            "rename": lambda: self._renamed(keeps=False),
            "copy": lambda: self._renamed(keeps=True),
        }
        if manner in acts:
            return acts[manner]()
        return [self._single(self._choose(), manner)]

    def _choose(self, spared: Sequence[Path] = ()) -> Path:
        """Draw a file. Kinds are equally likely, except that records and marks are more so."""
        by_kind: dict[str, list[Path]] = {}
        for path in files_of(self._data_dir):
            if path not in spared:
                by_kind.setdefault(kind_of(path.name), []).append(path)
        critical = [each for each in by_kind if each in (".log", ".checkpoint", *WATERMARK_NAMES)]
        kinds = critical if critical and self._rng.random() < _CRITICAL_SHARE else sorted(by_kind)
        return self._rng.choice(by_kind[self._rng.choice(kinds)])

    def _single(self, path: Path, manner: str) -> Damage:
        before, rng = path.read_bytes(), self._rng
        after: bytes | None = None
        if manner == "foreign":
            sources = [each for other in self._others for each in self._like(other, path)]
            different = [data for each in sources if (data := each.read_bytes()) != before]
            if different:
                after = rng.choice(different)
            else:
                manner = "flip"
        if manner == "zero":
            after = bytes(len(before))
        elif manner == "empty":
            after = b""
        elif manner == "truncate":
            is_tail = path.suffix == ".log" and rng.random() < _TAIL_SHARE
            least = max(0, len(before) - _TAIL_BYTES) if is_tail else 0
            after = before[: rng.randrange(least, len(before))] if before else b""
        elif manner == "flip":
            flipped = bytearray(before or b"\0")
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            after = bytes(flipped)
        return self._put(path, manner, before, after)

    def _like(self, other: Path, path: Path) -> list[Path]:
        """Return the file of the same name of another node, else files of the same kind.

        Checkpoints are left out: ``rename`` and ``copy`` put other checkpoints under this name.
        """
        same = other / path.relative_to(self._data_dir)
        if same.exists() or path.suffix == ".checkpoint":
            return [same] if same.exists() else []
        return [each for each in files_of(other) if kind_of(each.name) == kind_of(path.name)]

    def _pair(self) -> list[Damage]:
        first = self._single(self._choose(), self._rng.choice(MANNERS))
        second = self._single(self._choose((first.path,)), self._rng.choice(MANNERS))
        return [first, second]

    def _swap(self) -> list[Damage]:
        first = self._choose()
        second = self._choose((first,))
        contents = first.read_bytes(), second.read_bytes()
        found = [
            self._put(first, "swap", contents[0], contents[1]),
            self._put(second, "swap", contents[1], contents[0]),
        ]
        return [replace(each, is_other_mark=_are_marks(first, second)) for each in found]

    def _renamed(self, *, keeps: bool) -> list[Damage]:
        """Draw a new name: a later position for a checkpoint, another's name for other files."""
        source = self._choose()
        content = source.read_bytes()
        target = self._other_name(source)
        old = target.read_bytes() if target.exists() else None
        manner = "copy" if keeps else "rename"
        put = self._put(target, manner, old, content)
        found = [replace(put, is_other_mark=_are_marks(source, target))]
        if not keeps:
            found.append(self._put(source, manner, content, None))
        return found

    def _other_name(self, source: Path) -> Path:
        parsed = parse_name(source.name)
        if parsed is not None:
            moved = f"{parsed[0].offset + self._rng.randrange(1, 60):020d}"
            return source.with_name(moved + source.name[20:])
        if source.suffix in SUFFIXES:
            bases = [path for path in source.parent.glob(f"*{source.suffix}") if path != source]
            if bases and self._rng.random() < 0.5:
                return self._rng.choice(bases)
            moved = f"{int(source.name[:20]) + self._rng.randrange(1, 60):020d}"
            return source.with_name(moved + source.suffix)
        if source.name in WATERMARK_NAMES:
            return source.with_name(WATERMARK_NAMES[source.name == WATERMARK_NAMES[0]])
        return source.with_name(source.name + ".bak")

    def _put(self, path: Path, manner: str, before: bytes | None, after: bytes | None) -> Damage:
        write(path, after)
        return Damage(path, manner, before, after)


def _are_marks(*paths: Path) -> bool:
    return all(path.name in WATERMARK_NAMES for path in paths)


def write(path: Path, content: bytes | None) -> None:
    """Overwrite a file in place, as corruption does, or delete it if ``content`` is None."""
    if content is None:
        path.unlink(missing_ok=True)
        return
    if path.exists():
        path.chmod(0o640)
        with path.open("r+b") as file:
            file.write(content)
            file.truncate()
    else:
        path.write_bytes(content)
