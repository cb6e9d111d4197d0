"""Damage two or three files of one disk at once, while its node is down.

A node rebuilds a single damaged file from the others. State that is stored in one place only is
lost with a second file; this finds such state without a list of it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from quorum.batch import scan_batches
from quorum.errors import CorruptBatchError
from quorum.log.layout import QUORUM_STATE_NAME, WATERMARK_NAMES
from quorum.types import SnapshotId
from simulation.damaged_files import Change, DamagedFiles
from simulation.memory_filesystem import MemoryFileSystem
from snapshot.naming import file_name, parse_name

_GRAVE_SHARE = 0.6
_TAIL_SHARE = 0.7
_TAIL_BYTES = 1000
"""About as many bytes of a segment's end as one second of writing appends."""
_SWAP_SHARE = 0.1
_FLIP_SHARE = 0.5
"""Of segments damaged with two other files: those with a flipped bit. Other damage shows itself."""
_EPOCH_SHARE = 0.7
"""Of the bits flipped in a segment: low ones of a batch's epoch, which no checksum covers."""
_EPOCH_BITS = 2
_EPOCH_END = 16
"""Of the epoch, from the start of a batch."""
_MANNERS = ("delete", "zero", "flip", "truncate", "foreign")
_MANNERS_OF_MARKS = ("delete", "zero")
"""Used beside a second damaged mark and a cut segment: part of a mark may pass for an older one."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    kind: str
    content: bytes
    below: int
    """Only bytes below this may be damaged.

    After a power failure the last second of writes is above the mark (ADR 26), and only damage
    below the mark can be told from a torn tail.
    """


def damage_files(
    files: DamagedFiles,
    fs: MemoryFileSystem,
    rng: random.Random,
    others: list[MemoryFileSystem],
) -> list[Change]:
    """Damage two or three files in different ways, or swap two; empty where there are none.

    ``others`` are disks whose files may be placed here under the same names.
    """
    count = rng.choice((2, 2, 2, 3))
    found = [each for path, kind in files.files() if (each := _file(files, fs, path, kind))]
    if files.is_touched or len(found) < count:
        return []
    chosen: list[_File] = []
    for _ in range(count):
        chosen.append(_some(files, [each for each in found if each not in chosen], rng))
    if count == 2 and rng.random() < _SWAP_SHARE and _may_swap(*chosen):
        contents: list[bytes | None] = [each.content for each in reversed(chosen)]
    else:
        contents = [
            _damaged(each, rng, _sources(each, files, others), is_third=count > 2)
            for each in chosen
        ]
    files.is_damaged_widely = True
    return [
        files.put(each.path, each.kind, new) for each, new in zip(chosen, contents, strict=True)
    ]


def misname_checkpoint(
    files: DamagedFiles, fs: MemoryFileSystem, rng: random.Random
) -> Change | None:
    """Copy the newest checkpoint under the name of a later position in the same log.

    None where there is no checkpoint, or no later position in the newest segment.
    """
    newest = files.newest()
    taken = [path for path, kind in files.files() if kind == "checkpoint"]
    if files.is_touched or newest is None or not taken:
        return None
    parsed = parse_name(taken[-1].name)
    try:
        headers = scan_batches(fs.read_bytes(newest))
    except CorruptBatchError:
        return None
    ends = [SnapshotId(header.end_offset, header.epoch) for header in headers]
    later = [end for end in ends if parsed is not None and end.offset > parsed[0].offset]
    if not later:
        return None
    path = taken[-1].with_name(file_name(rng.choice(later)))
    fs.write_bytes(path, fs.read_bytes(taken[-1]))
    return Change(path, "checkpoint", loses=True)


def _file(files: DamagedFiles, fs: MemoryFileSystem, path: Path, kind: str) -> _File | None:
    content = fs.read_bytes(path)
    below = len(content)
    if kind == "log" and path == files.newest() and not files.keeps_mark:
        # After a power failure, damage above the synced mark cannot be told from a torn tail.
        below = files.marked_bytes(path)
    return _File(path, kind, content, below) if below else None


def _some(files: DamagedFiles, found: list[_File], rng: random.Random) -> _File:
    """Choose one; prefer the newest segment and files that record the end of the log."""
    newest = files.newest()
    grave = [each for each in found if each.path == newest or each.kind in WATERMARK_NAMES]
    return rng.choice(grave if grave and rng.random() < _GRAVE_SHARE else found)


def _may_swap(first: _File, second: _File) -> bool:
    # A checkpoint's name determines its content, and the two marks are equal.
    kinds = {first.kind, second.kind}
    is_whole = all(each.below == len(each.content) for each in (first, second))
    return is_whole and kinds != {"checkpoint"} and not kinds <= set(WATERMARK_NAMES)


def _sources(
    file: _File, files: DamagedFiles, others: list[MemoryFileSystem]
) -> list[MemoryFileSystem]:
    """Return the files of that name that may take its place.

    An earlier election state of this disk, left by another swap, is excluded: beside a damaged mark
    the disk has forgotten a vote, which no single disk can detect.
    """
    found = [each for each in others if each.exists(file.path)]
    if file.kind != QUORUM_STATE_NAME:
        return found
    return [each for each in found if not files.names_this_disk(each)]


def _damaged(
    file: _File, rng: random.Random, sources: list[MemoryFileSystem], *, is_third: bool
) -> bytes | None:
    """Return the new content of the file; None removes it."""
    content = file.content
    is_mark = is_third and file.kind in WATERMARK_NAMES
    manner = rng.choice(_MANNERS_OF_MARKS if is_mark else _MANNERS)
    is_flip = is_third and file.kind == "log" and rng.random() < _FLIP_SHARE
    if is_flip or file.below < len(content):
        manner = "flip"
    if manner == "foreign" and sources and file.kind != "checkpoint":
        return rng.choice(sources).read_bytes(file.path)
    if manner == "zero":
        return bytes(len(content))
    if manner == "flip":
        flipped = bytearray(content)
        position, bit = _some_bit(file, rng)
        flipped[position] ^= 1 << bit
        return bytes(flipped)
    if manner == "truncate":
        is_tail = file.kind == "log" and rng.random() < _TAIL_SHARE
        least = max(0, file.below - _TAIL_BYTES) if is_tail else 0
        return content[: rng.randrange(least, file.below)]
    return None


def _some_bit(file: _File, rng: random.Random) -> tuple[int, int]:
    """Position and bit; an epoch that is far too high would be refused at once."""
    if file.kind == "log" and rng.random() < _EPOCH_SHARE:
        try:
            headers = scan_batches(file.content)
        except CorruptBatchError:
            headers = []  # a torn tail
        places = [each.position + _EPOCH_END - 1 for each in headers]
        if found := [each for each in places if each < file.below]:
            return rng.choice(found), rng.randrange(_EPOCH_BITS)
    return rng.randrange(file.below), rng.randrange(8)
