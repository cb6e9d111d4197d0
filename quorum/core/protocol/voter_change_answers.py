"""How a change of the voter set ends: the answer to the asker, and an event.

``role_transitions`` uses this module, because losing leadership ends a change as well.

See: ADR 30; KIP-853.
"""

from __future__ import annotations

from quorum.core.contract.events import VoterChangeEnded
from quorum.core.contract.output import RequestSettled
from quorum.core.messages.voter_messages import VoterChangeResponse
from quorum.core.state.core_state import CoreState
from quorum.core.state.pending_change import LocalAsker, PendingChange
from quorum.core.state.roles import Leader
from quorum.errors import ErrorCode

_MAY_STILL_COMMIT = (
    "; the voters record is in the log at {offset}, so the outcome is unknown: "
    "look at the voter set before asking again"
)


def answer(core: CoreState, change: PendingChange, error: ErrorCode, message: str) -> None:
    """Answer the asker of ``change`` once; do nothing if it was answered before."""
    asker = change.asker
    change.asker = None
    if asker is None:
        return
    if error != ErrorCode.NONE and change.offset >= 0:
        message += _MAY_STILL_COMMIT.format(offset=change.offset)
    if isinstance(asker, LocalAsker):
        core.progress(RequestSettled(asker.token, error, message, change.offset))
        return
    core.send(
        asker.sender,
        VoterChangeResponse(
            asker.request_id,
            error,
            core.leader_id,
            core.epoch,
            message,
            core.answering_endpoints(),
        ),
    )


def end(core: CoreState, change: PendingChange, error: ErrorCode, message: str) -> None:
    """End the change for this leader; its record may still be committed or truncated."""
    core.requests.close(change.probe)
    core.event(VoterChangeEnded(change.kind.value, change.voter.key, error, change.offset, message))
    answer(core, change, error, message)


def fail_with_leadership(core: CoreState, leader: Leader) -> None:
    """Fail the pending change because leadership is lost; its outcome may be unknown."""
    change = leader.change
    leader.change = None
    if change is not None:
        end(core, change, ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node leads no longer")
