"""Handlers that break a rule of the wire on purpose. What finds them knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quorate.services import reads
from quorum.core.following import fetching, snapshot_transfer
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Response
from quorum.core.replication import fetch_serving
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.errors import ErrorCode
from quorum.transport import snapshots
from quorum.types import NodeId
from tests.simulation.zoo.bug import Patch

Install = Callable[[Patch], None]


def negative_number_trusted(patch: Patch) -> None:
    """A Fetch is evaluated as if its numbers were never below zero."""
    refusal_of_fetch = fetch_serving.refusal_of_fetch

    def trusting(core: CoreState, request: FetchRequest, *, serves: bool) -> ErrorCode | None:
        intact = replace(
            request,
            max_wait_ms=max(0, request.max_wait_ms),
            max_bytes=max(0, request.max_bytes),
            fetch_offset=max(0, request.fetch_offset),
        )
        return refusal_of_fetch(core, intact, serves=serves)

    patch.setattr(fetch_serving, "refusal_of_fetch", trusting)


def negative_offset_trusted(patch: Patch) -> None:
    """A client's read at a negative offset is taken for one that was reached long ago."""
    patch.setattr(reads, "at_least_offset", lambda options: options.at_least_offset)


def _taking(patch: Patch, is_taken: Callable[[CoreState, Any, Purpose], bool]) -> None:
    def take(
        core: CoreState, sender: NodeId, response: Response, purpose: Purpose
    ) -> InFlight | None:
        if not is_taken(core, response, purpose):
            return original(core, sender, response, purpose)
        core.requests.end_flight()
        return InFlight(sender, purpose, core.now_ms, response.request_id, ticket=0)

    original = fetching.take_in_flight
    for module in (fetching, snapshot_transfer):
        patch.setattr(module, "take_in_flight", take)


def answer_never_asked_for(patch: Patch) -> None:
    """An answer is applied whether anything was asked or not."""
    _taking(patch, lambda core, response, purpose: True)


def stale_number_accepted(patch: Patch) -> None:
    """While one request is under way, the answer to any other passes for its own."""
    _taking(
        patch,
        lambda core, response, purpose: (
            core.requests.in_flight is not None and core.requests.in_flight.purpose is purpose
        ),
    )


class _Any(str):
    """A name that every name is equal to."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


def wrong_topic_accepted(patch: Patch) -> None:
    """A checkpoint is served whatever topic it was asked of."""
    patch.setattr(snapshots, "METADATA_TOPIC", _Any("any"))
