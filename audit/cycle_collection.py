"""Let Python look for reference cycles rarely while rows are made.

Rows and records form no cycles, and hundreds of thousands of them are alive at once. Python's own
thresholds look through them again and again, which takes a quarter of the time of a read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (1_000_000, 20, 100)
"""As ``gc.set_threshold``: cycles of other code in this process are still found."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Raise the thresholds of the cycle collector of this process, and restore them at the end."""
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
