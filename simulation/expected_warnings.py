"""Warnings that runs cause on purpose, kept out of the log while they run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_CONSUMER = logging.getLogger("quorate.client.log_consumer")


@contextmanager
def without_consumer_warnings() -> Iterator[None]:
    """Log only errors of the consumer; the former level counts again afterwards."""
    before = _CONSUMER.level
    _CONSUMER.setLevel(logging.ERROR)
    try:
        yield
    finally:
        _CONSUMER.setLevel(before)
