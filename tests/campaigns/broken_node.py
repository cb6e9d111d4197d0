"""A node with one defect, by which a campaign shows that it can fail.

``QUORATE_CAMPAIGN_DEFECT`` names the defect. Everything else is the server as it is.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from typing import Any

VARIABLE = "QUORATE_CAMPAIGN_DEFECT"
EXIT_CODE = 9
DIGESTS_RIGHT = 3
"""The first digests are right. They include those that are taken before the first call."""


def vote_raises_epoch() -> None:
    """Break it: a request of any sender moves its receiver to a later epoch."""
    from quorum.core.protocol import epoch_claims

    epoch_claims._why_not_raise = lambda *_: None
    epoch_claims._why_no_candidate = lambda *_: None


def call_ends_process() -> None:
    """Break it: a call with a replica's name ends the receiving process."""
    from quorum.transport import unary

    def leave(*_: object) -> None:
        os._exit(EXIT_CODE)

    unary._check_consumer = leave


def call_raises() -> None:
    """Break it: a call with a replica's name raises an unexpected error."""
    from quorum.transport import unary

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a seeded defect")

    unary._check_consumer = fail


def image_changes() -> None:
    """Break it: the image of a node changes after a while without a write."""
    from quorate.services import image_digests

    taken, plain = itertools.count(), image_digests._digested

    def digested(*given: Any) -> Any:
        found = plain(*given)
        if next(taken) >= DIGESTS_RIGHT:
            object.__setattr__(found, "digest", bytes(len(found.digest)))
        return found

    image_digests._digested = digested


def refused_write_applies() -> None:
    """Break it: a write is applied, and its client is refused."""
    from quorate.services import metadata
    from quorum.errors import CommandError, ErrorCode

    plain = metadata.write_once

    async def write_once(node: Any, request: Any, context: Any) -> Any:
        answer = await plain(node, request, context)
        if request.writer.client_id != "honest" and request.writer.client_id:
            raise CommandError(ErrorCode.POLICY_VIOLATION, "a seeded defect")
        return answer

    metadata.write_once = write_once


def repairs_unreported() -> None:
    """Break it: a side file that was repaired at the start is neither logged nor counted."""
    from dataclasses import replace

    from quorate.server import node, process

    count, log = node.count_boot, process.log_boot
    node.count_boot = lambda observer, report, seconds: count(
        observer, replace(report, repaired=()), seconds
    )
    process.log_boot = lambda report: log(replace(report, repaired=()))


DEFECTS: dict[str, Callable[[], None]] = {
    defect.__name__: defect
    for defect in (
        vote_raises_epoch,
        call_ends_process,
        call_raises,
        image_changes,
        refused_write_applies,
        repairs_unreported,
    )
}

if __name__ == "__main__":
    DEFECTS[os.environ[VARIABLE]]()
    from quorate.entry import main

    sys.exit(main())
