"""Gives back memory that only the start of a process needed.

Loading a library touches much of it once: to relocate it, to register what it has. Linux keeps such
pages mapped in the process, and the C library keeps blocks that were freed. A node that has started
needs a third of them. Pages of a file are taken out of the process, not out of the page cache, so a
page that is needed after all comes back without reading the disk.

Only pages are taken that equal their file: of a mapping that no write has reached, and that none
can reach. Memory of the process's own keeps its content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

_MADV_DONTNEED: Final = 4
_SMAPS_PATH: Final = Path("/proc/self/smaps")
_READ_ONLY: Final = frozenset({"r-xp", "r--p"})
_CHANGED: Final = frozenset({"Anonymous:", "Swap:", "Private_Dirty:"})
"""Fields of a mapping that are above 0 if one of its pages differs from the file."""
_LAST_FIELD: Final = "VmFlags:"

Release: TypeAlias = Callable[[int, int], bool]
"""Called with address and bytes of whole pages; returns whether the kernel took them."""


def release_start_pages() -> int:
    """Give back what the start alone needed; returns the bytes of files that were mapped.

    Never raises: 0 where the system cannot do it. It takes about ten milliseconds.
    """
    try:
        import ctypes  # Not at the top: a Python may have been built without it.

        library = ctypes.CDLL(None)
        smaps = _SMAPS_PATH.read_text()
        madvise = library.madvise
    except (ImportError, OSError, ValueError, AttributeError):
        return 0
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    madvise.restype = ctypes.c_int
    released = release_all(
        unchanged_ranges(smaps.splitlines()),
        lambda address, size: bool(madvise(address, size, _MADV_DONTNEED) == 0),
    )
    trim = getattr(library, "malloc_trim", None)  # glibc's alone
    if trim is not None:
        trim.argtypes = (ctypes.c_size_t,)
        trim(0)
    return released


def release_all(found: Iterable[tuple[range, int]], release: Release) -> int:
    """Release every range; returns the resident bytes of those that the kernel took."""
    return sum(resident for each, resident in found if release(each.start, len(each)))


def unchanged_ranges(smaps: Iterable[str]) -> Iterator[tuple[range, int]]:
    """Yield mappings of files that are read-only and equal to the file, with their resident bytes.

    ``smaps`` are the lines of ``/proc/PID/smaps``. A mapping whose fields are not all there is
    left out.
    """
    addresses, resident, known = range(0), 0, 0
    for line in smaps:
        words = line.split()
        if len(words) < 2:
            continue
        if not words[0].endswith(":"):
            addresses, resident, known = _read_only(words), 0, 0
        elif words[0] == "Rss:":
            resident = int(words[1]) << 10
        elif words[0] in _CHANGED:
            known += 1
            if words[1] != "0":
                addresses = range(0)
        elif words[0] == _LAST_FIELD and known == len(_CHANGED) and addresses and resident:
            yield addresses, resident


def _read_only(words: list[str]) -> range:
    """Addresses of a mapping, by its line; empty unless it is a file's and cannot be written."""
    if words[1] not in _READ_ONLY or len(words) < 6 or not words[5].startswith("/"):
        return range(0)
    start, _, stop = words[0].partition("-")
    return range(int(start, 16), int(stop, 16))
