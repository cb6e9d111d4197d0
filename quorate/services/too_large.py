"""The refusal of a log read if the next batch does not fit in a message.

A batch is atomic and cannot be sent in parts. The limit on client writes keeps our batches smaller
than a message. An imported log may contain a larger batch; the refusal explains how its readers
can continue.
"""

from __future__ import annotations

from quorate.client.limits import MESSAGE_BYTES_MAX
from quorate.services.errors import RequestRefusedError
from quorum.errors import ErrorCode


def check_batch_fits(
    base_offset: int, end_offset: int, size_bytes: int, *, framing_bytes: int = 0
) -> None:
    """Raise an error unless the batch [``base_offset``, ``end_offset``) fits in one message.

    Raises:
        RequestRefusedError: MESSAGE_TOO_LARGE, with the batch's offsets and how to continue.
    """
    if size_bytes + framing_bytes > MESSAGE_BYTES_MAX:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch [{base_offset}, {end_offset}) has {size_bytes} bytes, more than a message "
            "can hold; read it with `quorate log dump` on a node, and continue from offset "
            f"{end_offset}",
        )


def check_state_fits(offset: int, size_bytes: int) -> None:
    """Raise an error unless this part of the state at ``offset`` fits in a message.

    Raises:
        RequestRefusedError: MESSAGE_TOO_LARGE, with the state's offset and how to continue.
    """
    if size_bytes > MESSAGE_BYTES_MAX:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a record of the state has {size_bytes} bytes, more than a message can hold; read the "
            "state with `quorate snapshot dump` on a node, and continue from offset "
            f"{offset}",
        )
