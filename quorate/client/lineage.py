"""Locate the offset from which a reader's history differs from the log, by asking the leader.

``quorum.log_position`` decides which questions are needed; this module asks them.

See: KIP-279 (279.2), KIP-320, requirements 320.3 and 320.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quorum.log_position import Divergence, Lineage

AskEpochEnd = Callable[[int], Awaitable[tuple[int, int]]]
"""Ask the leader for its largest epoch at or below one and where that ends; -1 and the log start if
all that the log has is newer.
"""
AskDigest = Callable[[int, bytes], Awaitable[bool | None]]
"""Ask the leader whether its log has this digest below an offset; None if that is not known."""


async def find_divergence(
    lineage: Lineage,
    position: int,
    answer: tuple[int, int],
    ask_epoch_end: AskEpochEnd,
    ask_digest: AskDigest,
) -> Divergence:
    """Return where the records read below ``position`` begin to differ from the log.

    ``answer`` is the leader's for the newest epoch read. The walk over the epochs locates the
    point, and the digests at the starts of epochs confirm it.
    """
    walk = lineage.walk(position, *answer)
    try:
        epoch = next(walk)
        while True:
            epoch = walk.send(await ask_epoch_end(epoch))
    except StopIteration as located:
        return await confirm(lineage, located.value, ask_digest)


async def confirm(lineage: Lineage, found: Divergence, ask_digest: AskDigest) -> Divergence:
    """Return ``found`` if the digests agree with it, else the lowest offset known to differ."""
    check = lineage.check_digests(found)
    try:
        mark = next(check)
        while True:
            mark = check.send(await ask_digest(*mark))
    except StopIteration as confirmed:
        result: Divergence = confirmed.value
        return result
