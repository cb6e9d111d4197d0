"""What a consumer of the log is told where no message holds what comes next.

A batch is atomic and cannot be handed out in parts. None of ours is as large as a message, since
what clients may write is bounded by less; one that got into the log otherwise must not leave its
readers without a word on how to go on.
"""

from __future__ import annotations

from quorate.client.limits import MESSAGE_BYTES_MAX
from quorate.services.errors import RequestRefusedError
from quorum.errors import ErrorCode


def check_batch_fits(
    base_offset: int, end_offset: int, size_bytes: int, *, framing_bytes: int = 0
) -> None:
    """Pass if a message holds the batch [``base_offset``, ``end_offset``), and what goes around it.

    Raises:
        RequestRefusedError: MESSAGE_TOO_LARGE, with where it is found and how to go on.
    """
    if size_bytes + framing_bytes > MESSAGE_BYTES_MAX:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch [{base_offset}, {end_offset}) has {size_bytes} bytes, more than a message "
            f"holds; read it with `quorate log dump` where a node keeps its log, and go on from "
            f"offset {end_offset}",
        )


def check_state_fits(offset: int, size_bytes: int) -> None:
    """Pass if a message holds this part of the state at ``offset``.

    Raises:
        RequestRefusedError: MESSAGE_TOO_LARGE, with where the state is found and how to go on.
    """
    if size_bytes > MESSAGE_BYTES_MAX:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a record of the state has {size_bytes} bytes, more than a message holds; read the "
            f"state with `quorate snapshot dump` where a node keeps its checkpoints, and go on "
            f"from offset {offset}",
        )
