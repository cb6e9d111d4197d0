"""What a started process gives back: pages of files that equal the file, and nothing else."""

from __future__ import annotations

import mmap
import tempfile

from quorate.server.start_pages import release_all, release_start_pages, unchanged_ranges


def _mapping(line: str, resident: int, *, anonymous: int = 0, swap: int = 0, dirty: int = 0) -> str:
    return (
        f"{line}\nSize: 64 kB\nRss: {resident} kB\nPrivate_Dirty: {dirty} kB\n"
        f"Anonymous: {anonymous} kB\nSwap: {swap} kB\nVmFlags: rd mr mw me\n"
    )


CODE = "7f0000010000-7f0000020000 r-xp 00000000 08:01 77   /usr/lib/libc.so.6"
DATA = "7f0000020000-7f0000028000 r--p 00010000 08:01 77   /usr/lib/a file.so"


def test_code_and_constants_of_files_are_found_with_their_resident_bytes() -> None:
    """The range is half-open, as in the kernel's text."""
    smaps = _mapping(CODE, 48) + _mapping(DATA, 8)
    assert list(unchanged_ranges(smaps.splitlines())) == [
        (range(0x7F0000010000, 0x7F0000020000), 48 << 10),
        (range(0x7F0000020000, 0x7F0000028000), 8 << 10),
    ]


def test_a_mapping_with_a_page_of_its_own_is_left_alone() -> None:
    """Relocated constants and breakpoints are not in the file, nor what was swapped."""
    smaps = _mapping(DATA, 8, anonymous=4) + _mapping(CODE, 8, swap=4) + _mapping(CODE, 8, dirty=4)
    assert list(unchanged_ranges(smaps.splitlines())) == []


def test_what_is_no_file_or_can_be_written_is_left_alone() -> None:
    """The heap, the kernel's pages, shared memory, writable data."""
    lines = (
        "557000000000-557000500000 rw-p 00000000 00:00 0 [heap]",
        "7f0000010000-7f0000020000 r-xp 00000000 00:00 0 [vdso]",
        "7f0000010000-7f0000020000 r--p 00000000 00:00 0",
        "7f0000010000-7f0000020000 r--s 00000000 08:01 77 /shared",
        "7f0000010000-7f0000020000 rw-p 00000000 08:01 77 /usr/lib/libc.so.6",
    )
    assert list(unchanged_ranges("".join(_mapping(each, 8) for each in lines).splitlines())) == []


def test_a_kernel_that_does_not_tell_what_has_changed_is_not_guessed_at() -> None:
    """Without the line about swap a page that was written might be lost."""
    smaps = _mapping(CODE, 8).replace("Swap: 0 kB\n", "")
    assert list(unchanged_ranges(smaps.splitlines())) == []


def test_what_the_kernel_refuses_is_not_counted() -> None:
    """It may refuse one mapping and take the next."""
    asked: list[tuple[int, int]] = []

    def release(address: int, size: int) -> bool:
        asked.append((address, size))
        return len(asked) > 1

    found = [(range(0x1000, 0x3000), 4096), (range(0x8000, 0x9000), 2048)]
    assert release_all(found, release) == 2048
    assert asked == [(0x1000, 0x2000), (0x8000, 0x1000)]


def test_releasing_in_the_running_process_changes_no_content() -> None:
    """Own memory, and a file's content, are read as before; so is the code that runs on."""
    kept = [bytes([number % 251]) * 4096 for number in range(256)]
    with tempfile.TemporaryFile() as file:
        file.write(bytes(range(256)) * 256)
        file.flush()
        with (
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as read,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as copied,
        ):
            copied[:5] = b"mine!"
            assert release_start_pages() >= 0
            assert read[:] == bytes(range(256)) * 256
            assert copied[:5] == b"mine!"
    assert all(each == bytes([number % 251]) * 4096 for number, each in enumerate(kept))
