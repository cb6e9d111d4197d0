"""One event covers all partitions of a broker (630.17), on a hundredth of the KIP's cluster."""

from __future__ import annotations

from bench.fence_amount import measure


def test_an_event_is_as_small_for_many_partitions_as_for_few() -> None:
    """Goal: bytes do not grow with partitions. Method: both forms, same partitions afterwards."""
    few, many = measure(100), measure(1_000)
    assert (few.partitions_changed, many.partitions_changed) == (30, 300)
    assert few.event_bytes == many.event_bytes < 120
    assert many.records_bytes > 30 * many.partitions_changed
