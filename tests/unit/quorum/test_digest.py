"""The running log digest: it depends on every byte, every boundary and the order."""

from __future__ import annotations

from quorum.batch import encode_batch, with_position
from quorum.digest import EMPTY_LOG_DIGEST, fold

A = encode_batch([b"a"], base_offset=0, epoch=1, timestamp=1)
B = encode_batch([b"b"], base_offset=1, epoch=1, timestamp=1)


def test_value_is_pinned() -> None:
    """Goal: a release that computes another value cannot compare itself with its peers."""
    assert fold(EMPTY_LOG_DIGEST, A).hex() == "3223109fc765d63e6eb2f343b9fc9bf0"


def test_position_order_and_boundaries_matter() -> None:
    base = fold(fold(EMPTY_LOG_DIGEST, A), B)
    others = [
        fold(fold(EMPTY_LOG_DIGEST, B), A),
        fold(EMPTY_LOG_DIGEST, A + B),
        fold(fold(EMPTY_LOG_DIGEST, with_position(A, 0, 2)), B),
        fold(fold(EMPTY_LOG_DIGEST, with_position(A, 5, 1)), B),
        fold(fold(b"\x01" + bytes(15), A), B),
    ]
    assert base not in others
    assert len(set(others)) == len(others)
