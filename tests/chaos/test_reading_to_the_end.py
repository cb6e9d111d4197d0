"""A run's reader passes every watcher, so that each delivery can be compared with its batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos.run import have_read


def at(offset: int, *faults: str) -> Any:
    return SimpleNamespace(offset=offset, faults=list(faults))


@pytest.mark.parametrize(
    ("reader", "watchers", "expected"),
    [
        (at(7), [at(7), at(7)], True),
        (at(6), [at(7), at(7)], False),
        (at(7), [at(6), at(7)], False),
        (at(7), [at(8), at(7)], False),
        (at(8), [at(8), at(7)], True),
        (at(7), [at(2, "the watch ended"), at(7)], True),
        (at(3, "the log diverges"), [at(8), at(7)], True),
    ],
)
def test_the_reader_ends_behind_all_watchers(
    reader: Any, watchers: list[Any], *, expected: bool
) -> None:
    assert have_read(7, reader, watchers) is expected
