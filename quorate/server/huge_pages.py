"""Moves the memory that a process has loaded into huge pages, to save address translation.

A node sleeps between two messages, and other processes replace its entries in the processor's
address cache. Afterwards the address of nearly every page must be translated again, on a virtual
machine through two page tables. With pages of 2 MiB there are few addresses to translate.

Linux 6.1 and later do this when asked (``MADV_COLLAPSE``), whatever the system's setting for
transparent huge pages. Elsewhere nothing happens. Only memory that is nearly all in use already is
moved, so a process hardly grows by it.

It blocks the process for up to some tenths of a second on a busy machine. Call it before the node
serves requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

BYTES_MAX: Final = 64 << 20
"""Most that is requested."""
_REFUSALS_MAX: Final = 3
"""Give up after this many refusals: each further search of the kernel costs more."""
_MADV_COLLAPSE: Final = 25
_SIZE_PATH: Final = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
_SMAPS_PATH: Final = Path("/proc/self/smaps")
_DENSE: Final = 7 / 8
"""Share of a mapping that must be in memory. Stacks of threads are nearly empty, and stay so."""

Collapse: TypeAlias = Callable[[int, int], bool]
"""Called with address and bytes of one huge page; returns whether the kernel made it one."""


def move_to_huge_pages(bytes_max: int = BYTES_MAX) -> int:
    """Move the process's own dense memory, the lowest addresses first; returns bytes moved.

    Never raises: 0 where the system cannot do it. A huge page of 2 MiB takes about a
    millisecond.
    """
    try:
        size = int(_SIZE_PATH.read_text())
        smaps = _SMAPS_PATH.read_text()
        collapse = _collapse()
    except (ImportError, OSError, ValueError, AttributeError):
        return 0
    return collapse_all(dense_ranges(smaps.splitlines()), size, bytes_max, collapse)


def collapse_all(ranges: Iterable[range], size: int, bytes_max: int, collapse: Collapse) -> int:
    """Ask for every huge page of ``size`` that lies wholly in one of ``ranges``; bytes moved."""
    moved = refused = 0
    for each in ranges:
        first = -(-each.start // size) * size
        for address in range(first, each.stop - size + 1, size):
            if moved + refused + size > bytes_max or refused >= _REFUSALS_MAX * size:
                return moved
            if collapse(address, size):
                moved += size
            else:
                refused += size
    return moved


def dense_ranges(smaps: Iterable[str]) -> Iterator[range]:
    """Addresses of writable private memory that is no file's and nearly all in use.

    ``smaps`` are the lines of ``/proc/PID/smaps``.
    """
    addresses = range(0)
    for line in smaps:
        words = line.split()
        if len(words) < 2:
            continue
        if not words[0].endswith(":"):
            addresses = _anonymous(words)
        elif words[0] == "Rss:" and int(words[1]) << 10 >= len(addresses) * _DENSE > 0:
            yield addresses


def _anonymous(words: list[str]) -> range:
    """Addresses of a mapping, by its line; empty when it is not of the kind that is moved."""
    name = words[5] if len(words) > 5 else ""
    if words[1] != "rw-p" or not (name in ("", "[heap]") or name.startswith("[anon")):
        return range(0)
    start, _, stop = words[0].partition("-")
    return range(int(start, 16), int(stop, 16))


def _collapse() -> Collapse:
    import ctypes  # Not at the top: a Python may have been built without it.

    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    madvise.restype = ctypes.c_int

    def collapse(address: int, size: int) -> bool:
        return bool(madvise(address, size, _MADV_COLLAPSE) == 0)

    return collapse
