"""Which users have credentials, by name; never the credentials themselves."""

from __future__ import annotations

import heapq
from typing import Final

from quorate.services.answers import name_refusal
from quorate.services.errors import RequestRefusedError
from quorum.answered import Form
from quorum.errors import ErrorCode
from quorum.v1 import admin_pb2, common_pb2
from statemachine.image import MetadataImage
from statemachine.prepare.scram import DECOY

LISTED_USERS_MAX: Final = 1_000
"""Users of one answer: names of the longest kind just fit a message."""
_METHOD: Final = "DescribeUserScramCredentials"


def described_users(
    image: MetadataImage, request: admin_pb2.DescribeUserScramCredentialsRequest
) -> admin_pb2.DescribeUserScramCredentialsResponse:
    """Return the users that a request selects, without a position.

    Raises:
        RequestRefusedError: INVALID_REQUEST, it names more than ``LISTED_USERS_MAX`` users.
    """
    if len(request.users) > LISTED_USERS_MAX:
        raise RequestRefusedError(
            ErrorCode.INVALID_REQUEST,
            f"{len(request.users)} users in one request, more than {LISTED_USERS_MAX}",
        )
    by_name: dict[str, dict[int, int]] = {}
    wanted = frozenset(request.users)
    for (name, mechanism), record in image.security.scram.items():
        is_asked_for = name in wanted if wanted else name > request.after_name
        if is_asked_for and name != DECOY[0]:
            by_name.setdefault(name, {})[mechanism] = record.iterations
    limit = min(max(0, request.limit) or LISTED_USERS_MAX, LISTED_USERS_MAX)
    names = request.users or heapq.nsmallest(limit + 1, by_name)
    answer = admin_pb2.DescribeUserScramCredentialsResponse(
        has_more=not wanted and len(names) > limit
    )
    for name in names if wanted else names[:limit]:
        user = answer.users.add(name=name)
        for mechanism, iterations in sorted(by_name.get(name, {}).items()):
            user.credentials.add(mechanism=mechanism, iterations=iterations)
        if not user.credentials:
            name_refusal(_METHOD, Form.PART, ErrorCode.RESOURCE_NOT_FOUND)
            user.error_code = common_pb2.ERROR_CODE_RESOURCE_NOT_FOUND
    return answer
