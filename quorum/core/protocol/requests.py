"""The rules that all requests to peers share: sending, answers, failures, time-outs, back-off.

A request is sent when it is due. No answer within ``request_timeout_ms``, or word that there will
be none, is a failure; after it the request is due again, later with every failure in a row.

See: ADR 53.
"""

from __future__ import annotations

from quorum.core.messages.message_types import Response
from quorum.core.protocol.refusals import ignore
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.peers import backoff_ms
from quorum.core.state.timers import Timer
from quorum.types import NodeId


def is_to_be_sent(core: CoreState, request: PeerRequest) -> bool:
    """Whether ``request`` is to be sent now; one that waits for too long fails first."""
    if core.now_ms < request.due_ms or has_timed_out(core, request):
        return False
    if request.failures:
        core.fired(Timer.RETRY_BACKOFF, request.purpose)
    return True


def has_timed_out(core: CoreState, request: PeerRequest) -> bool:
    """Fail ``request`` if it has waited for its answer for too long; whether it has."""
    if not request.request_id or core.now_ms < request.due_ms:
        return False
    core.fired(Timer.REQUEST_TIMEOUT, request.purpose)
    retry_later(core, request)
    return True


def next_attempt(core: CoreState, request: PeerRequest) -> int:
    """Begin to wait for an answer to ``request``; returns the id to send it with."""
    request_id = core.next_request_id()
    core.requests.open(request, request_id)
    request.due_ms = core.now_ms + core.config.request_timeout_ms
    return request_id


def retry_later(core: CoreState, request: PeerRequest) -> None:
    """The attempt brought nothing: the request is due again after a back-off."""
    core.requests.close(request)
    request.failures += 1
    request.due_ms = core.now_ms + backoff_ms(core.config, request.failures)


def find_request(
    core: CoreState, sender: NodeId, response: Response, *purposes: Purpose
) -> PeerRequest | None:
    """The open request for one of ``purposes`` that ``response`` answers; None if there is none."""
    request = core.requests.get(response.request_id)
    if request is None or request.purpose not in purposes or not request.is_answered_by(sender):
        ignore(core, sender, response, "never asked for, or no longer")
        return None
    return request


def answered(
    core: CoreState, sender: NodeId, response: Response, *purposes: Purpose
) -> PeerRequest | None:
    """As ``find_request``; the request is closed."""
    request = find_request(core, sender, response, *purposes)
    if request is not None:
        core.requests.close(request)
    return request


def response_due_ms(core: CoreState, ticket: int) -> int:
    """Until when to wait for the answer to a request that leaves when ``ticket`` is durable."""
    has_left = ticket <= core.durable_ticket
    return core.now_ms + core.config.request_timeout_ms if has_left else NEVER_MS
