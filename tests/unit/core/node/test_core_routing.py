"""Which handler gets a message: one for each type, and a relay's own for what it serves."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.events import MessageIgnored
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.messages.fetch_messages import ReceivedFetchRequest
from quorum.core.messages.message_types import ReceivedRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.node.routing import HANDLERS, PROOF_HANDLERS, RELAY_HANDLERS, handle
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Role
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from tests.unit.core.node.test_core_deadlines import core_of, follower, leader

SENDER = 9
RELAY = RelayPlan(serves=True)
SERVED = (ReceivedFetchRequest, FetchSnapshotRequest)


def blank(kind: type[Any]) -> Any:
    """A message of a type, without content: no handler looks into it here."""
    return object.__new__(kind)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was called instead of the handlers: the table, the type, and the arguments."""
    found: list[tuple[Any, ...]] = []

    def recorder(table: str, kind: type[Any]) -> Any:
        def record(core: CoreState, *args: Any, **more: Any) -> None:
            found.append((table, kind, core, *args, *more.values()))

        return record

    tables = {"handlers": HANDLERS, "proof": PROOF_HANDLERS, "relay": RELAY_HANDLERS}
    for name, table in tables.items():
        for kind in table:
            monkeypatch.setitem(table, kind, recorder(name, kind))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("kind", HANDLERS)
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_each_message_has_a_handler(
    calls: list[tuple[Any, ...]], kind: type[Any], is_wrapped: bool
) -> None:
    core, message = core_of(follower()), blank(kind)
    handle(core, SENDER, ReceivedRequest(message, is_proven=True) if is_wrapped else message)
    assert calls == [("handlers", kind, core, SENDER, message)]


@pytest.mark.parametrize("kind", PROOF_HANDLERS)
@pytest.mark.parametrize("is_proven", [False, True])
def test_some_handlers_get_to_know_whether_the_sender_is_proven(
    calls: list[tuple[Any, ...]], kind: type[Any], is_proven: bool
) -> None:
    core, message = core_of(follower()), blank(kind)
    handle(core, SENDER, ReceivedRequest(message, is_proven=is_proven))
    assert calls == [("proof", kind, core, SENDER, message, is_proven)]


@pytest.mark.parametrize("kind", PROOF_HANDLERS)
def test_nobody_is_proven_without_the_transports_word(
    calls: list[tuple[Any, ...]], kind: type[Any]
) -> None:
    core, message = core_of(follower()), blank(kind)
    handle(core, SENDER, message)
    assert calls == [("proof", kind, core, SENDER, message, False)]


@pytest.mark.parametrize("kind", SERVED)
@pytest.mark.parametrize(
    ("relays", "role", "voters", "serves"),
    [
        (RELAY, follower(), (2, 3), True),
        (NO_RELAYS, follower(), (2, 3), False),
        (RELAY, follower(), (1, 2, 3), False),
        (NO_RELAYS, follower(), (1, 2, 3), False),
        (RELAY, leader().role, (1, 2, 3), False),
        # It leads on until its own removal is committed.
        (RELAY, leader().role, (2, 3), False),
    ],
)
def test_an_observer_that_is_a_relay_serves_others(
    calls: list[tuple[Any, ...]],
    kind: type[Any],
    relays: RelayPlan,
    role: Role,
    voters: tuple[int, ...],
    serves: bool,
) -> None:
    core, message = core_of(role, voters=voters, relays=relays), blank(kind)
    handle(core, SENDER, message)
    if serves:
        assert calls == [("relay", kind, core, core.relay, SENDER, message)]
    else:
        assert calls == [("handlers", kind, core, SENDER, message)]


def test_a_relay_handles_everything_else_like_other_observers(
    calls: list[tuple[Any, ...]],
) -> None:
    core = core_of(follower(), voters=(2, 3), relays=RELAY)
    others = [kind for kind in (*HANDLERS, *PROOF_HANDLERS) if kind not in SERVED]
    for kind in others:
        handle(core, SENDER, blank(kind))
    assert [each[1] for each in calls] == others
    assert "relay" not in {each[0] for each in calls}


def test_a_message_of_no_known_type_is_ignored(calls: list[tuple[Any, ...]]) -> None:
    core = core_of(follower())
    handle(core, SENDER, "a message")  # type: ignore[arg-type]
    reason = IgnoreReason.UNKNOWN_KIND
    assert core.out.events == [MessageIgnored(SENDER, "str", reason, "", is_violation=True)]
    assert not calls


def test_every_kind_of_request_is_served_by_one_table() -> None:
    assert not HANDLERS.keys() & PROOF_HANDLERS.keys()
    assert set(SERVED) == RELAY_HANDLERS.keys()
    assert RELAY_HANDLERS.keys() <= HANDLERS.keys()
    assert VoteRequest in HANDLERS
