"""The rules that all requests to peers share: sending, answers, failures, time-outs, back-off.

A request is sent when it is due. It fails when no answer comes within ``request_timeout_ms``, or
when the runtime reports that none will come. A failed request is due again after a back-off, which
grows with each failure in a row.

See: ADR 53.
"""

from __future__ import annotations

from quorum.core.contract.reasons import IgnoreReason
from quorum.core.messages.message_types import Response
from quorum.core.protocol.refusals import ignore
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.peers import backoff_ms
from quorum.core.state.timers import Timer
from quorum.types import NodeId


def is_to_be_sent(core: CoreState, request: PeerRequest) -> bool:
    """Return whether to send ``request`` now; a request that has timed out fails first."""
    if core.now_ms < request.due_ms or has_timed_out(core, request):
        return False
    if request.failures:
        core.fired(Timer.RETRY_BACKOFF, request.purpose)
    return True


def has_timed_out(core: CoreState, request: PeerRequest) -> bool:
    """Fail ``request`` if its answer is overdue; return whether it was."""
    if not request.request_id or core.now_ms < request.due_ms:
        return False
    core.fired(Timer.REQUEST_TIMEOUT, request.purpose)
    retry_later(core, request)
    return True


def next_attempt(core: CoreState, request: PeerRequest) -> int:
    """Begin to wait for an answer to ``request``; return the request id to send it with."""
    request_id = core.requests.next_id()
    core.requests.open(request, request_id)
    request.due_ms = core.now_ms + core.config.request_timeout_ms
    return request_id


def retry_later(core: CoreState, request: PeerRequest) -> None:
    """Close the failed attempt and make the request due again after a back-off."""
    core.requests.close(request)
    request.failures += 1
    request.due_ms = core.now_ms + backoff_ms(core.config, request.failures)


def find_request(
    core: CoreState, sender: NodeId, response: Response, *purposes: Purpose
) -> PeerRequest | None:
    """Return the open request for one of ``purposes`` that ``response`` answers, or None."""
    request = core.requests.get(response.request_id)
    if request is None or request.purpose not in purposes or not request.is_answered_by(sender):
        ignore(core, sender, response, IgnoreReason.NEVER_ASKED)
        return None
    return request


def answered(
    core: CoreState, sender: NodeId, response: Response, *purposes: Purpose
) -> PeerRequest | None:
    """Like ``find_request``, but also close the request."""
    request = find_request(core, sender, response, *purposes)
    if request is not None:
        core.requests.close(request)
    return request


def response_due_ms(core: CoreState, ticket: int) -> int:
    """Return when the answer is overdue to a request that leaves when ``ticket`` is durable.

    ``NEVER_MS`` while the request has not left.
    """
    has_left = ticket <= core.disk.durable_ticket
    return core.now_ms + core.config.request_timeout_ms if has_left else NEVER_MS
