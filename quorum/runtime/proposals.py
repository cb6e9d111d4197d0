"""The check of what this leader proposes, before the core and the log see it.

The batches were encoded by this process a moment ago, and their headers come from the encoder. So
neither the driver nor the log reads or verifies the bytes again, but where the writer joins several
appends. What is checked is that bytes and headers belong together and continue the log. Followers
verify the bytes when they arrive there; a lone voter does when it reads them from its files.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorum.batch import BatchHeader
from quorum.errors import violation


def checked_end(
    batches: Sequence[bytes], headers: Sequence[BatchHeader], base_offset: int, epoch: int
) -> int:
    """Return the end offset of batches that follow ``base_offset`` in ``epoch``.

    Raises:
        InvariantViolation: The headers are not those of the batches, in order, or of another
            position in the log.
    """
    position, end_offset = 0, base_offset
    for batch, header in zip(batches, headers, strict=True):
        size = len(batch)
        if (
            header.position != position
            or header.size != size
            or header.base_offset != end_offset
            or header.epoch != epoch
        ):
            raise violation(
                "a batch is encoded for the position that it gets",
                header=header,
                size=size,
                position=position,
                offset=end_offset,
                epoch=epoch,
            )
        position += size
        end_offset = header.end_offset
    return end_offset
