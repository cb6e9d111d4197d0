"""Damage to the real files of one node's data directory: single files, pairs, swaps, renames."""

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
_GRAVE_SHARE = 0.5


def kind_of(name: str) -> str:
    """What a file is: the suffix of a segment's and a checkpoint's, else the whole name."""
    suffix = Path(name).suffix
    return suffix if suffix in SUFFIXES else name


@dataclass(frozen=True, slots=True)
class Damage:
    """What was done to one file; the file may have lain elsewhere, or nowhere, before."""

    path: Path
    manner: str
    before: bytes | None
    """None: there was no such file."""
    after: bytes | None
    """None: there is none now."""
    is_other_mark: bool = False
    """Whether it now holds the other copy of the durable mark, as that lay there."""

    @property
    def kind(self) -> str:
        return kind_of(self.path.name)

    def __str__(self) -> str:
        return f"{self.manner} {self.path.name}"


def files_of(data_dir: Path) -> list[Path]:
    """Every file that a node wrote and reads again, the empty bootstrap checkpoint left out."""
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
    """The segment that is written to."""
    return sorted(partition_directory(data_dir).glob("*.log"))[-1]


class Damager:
    """Damages files of one node; ``others`` are data directories of the other nodes."""

    def __init__(self, data_dir: Path, others: Sequence[Path], rng: random.Random) -> None:
        self._data_dir = data_dir
        self._others = others
        self._rng = rng

    def some(self, manner: str) -> list[Damage]:
        """Carry one damage out; [] where there is no file for it."""
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
        """A file; of each kind alike, and more often of those that hold records or marks."""
        by_kind: dict[str, list[Path]] = {}
        for path in files_of(self._data_dir):
            if path not in spared:
                by_kind.setdefault(kind_of(path.name), []).append(path)
        grave = [each for each in by_kind if each in (".log", ".checkpoint", *WATERMARK_NAMES)]
        kinds = grave if grave and self._rng.random() < _GRAVE_SHARE else sorted(by_kind)
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
        """The file of the same name elsewhere, else those of its kind, checkpoints left out.

        Another checkpoint under this name is what ``rename`` and ``copy`` do.
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
        """A checkpoint under a later position, a segment or side file under another's name."""
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
    """Let a file have this content, in place as corruption does, or be gone."""
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
