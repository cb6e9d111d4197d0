"""Committed positions of groups, from one image (``FetchPositions``)."""

from __future__ import annotations

from typing import Any, Final, cast

from quorate.services.access import Access
from quorate.services.answers import name_refusal
from quorate.services.errors import RequestRefusedError
from quorum.answered import Form
from quorum.errors import ErrorCode
from quorum.v1 import commands_pb2, metadata_pb2
from statemachine.command_access import on_group
from statemachine.image import MetadataImage
from statemachine.sections.acl_index import AclOperation

GROUPS_PER_REQUEST_MAX: Final = 1_000
"""Most groups in one request; a position may have some KiB."""


def add_positions(
    image: MetadataImage,
    request: metadata_pb2.FetchPositionsRequest,
    response: metadata_pb2.FetchPositionsResponse,
    access: Access | None = None,
) -> None:
    """Add the position of each requested group, offset -1 where there is none.

    A group whose position the caller may not see gets the refusal, whether it has one or not.

    Raises:
        RequestRefusedError: MESSAGE_TOO_LARGE, too many groups are requested.
    """
    if len(request.groups) > GROUPS_PER_REQUEST_MAX:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{len(request.groups)} groups in one request, more than {GROUPS_PER_REQUEST_MAX}; "
            "request fewer at a time",
        )
    for group in request.groups:
        found = response.positions.add(
            group=group, offset=-1, leader_epoch=-1, commit_timestamp_ms=-1
        )
        action = on_group(group, AclOperation.DESCRIBE)
        if access is not None and not access.allows(image, action):
            code = access.report(action)
            name_refusal("FetchPositions", Form.PART, code)
            found.error_code = cast("Any", int(code))
            continue
        known = image.positions.of(group)
        if known is None:
            continue
        found.offset, found.leader_epoch = known.offset, known.leader_epoch
        found.log_digest, found.log_incarnation = known.log_digest, known.log_incarnation
        found.metadata = known.metadata
        found.commit_timestamp_ms = known.commit_timestamp_ms
        found.epochs.extend(
            commands_pb2.ReadEpoch(
                epoch=each.epoch, start_offset=each.start_offset, log_digest=each.log_digest
            )
            for each in known.epochs
        )
