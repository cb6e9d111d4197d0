"""Every interleaving of small clusters of the production core, intact and with one rule broken.

The models here are those of ``quorate sim explore`` within bounds that take seconds; the whole
ones run at night.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorum.core.following import snapshot_install
from quorum.core.leadership import leadership_term
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.replication import fetch_serving
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader
from quorum.errors import ErrorCode
from simulation.explore.fingerprint import fingerprint
from simulation.explore.model import LATE_ALL, Model
from simulation.explore.models import MODELS
from simulation.explore.report_lines import report_lines
from simulation.explore.search import Report, explore
from simulation.explore.slots import FETCH, LATE
from simulation.explore.space import Space, State
from simulation.invariants.violation import Violation
from tests.simulation.zoo import durability, elections, membership, replicating, voting
from tests.simulation.zoo.bug import Patch


def _clean(report: Report) -> Report:
    assert report.violation is None, "\n".join(report_lines(report))
    return report


@pytest.mark.long
def test_three_voters_two_epochs_and_one_record_to_the_end() -> None:
    """Every state is visited, both epochs are led, and the record is committed in some."""
    report = _clean(explore(replace(MODELS["records"], records=1)))
    assert report.is_complete
    assert report.led_epochs == 2
    assert report.committed_max == 3 + 1 + 1  # opening of epoch 1, leader change of 2, the record
    assert report.states > 1_000


def test_a_checkpoint_brings_the_voters_of_its_end() -> None:
    report = _clean(explore(MODELS["checkpoint"], states_max=5_000))
    assert report.led_epochs >= 1


def test_the_same_model_has_the_same_states_every_time() -> None:
    model = replace(MODELS["records"], records=0, epochs=1)
    first, second = explore(model), explore(model)
    assert first.is_complete
    assert (first.states, first.transitions) == (second.states, second.transitions)


def test_a_fingerprint_depends_on_content_and_not_on_identity() -> None:
    one, other = [1, {"a": (2, b"x")}], [1, {"a": (2, b"x")}]
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint([1, {"a": (2, b"y")}])


TWO_LEADERSHIP_TERMS = replace(
    MODELS["removals-stale"], removals=0, epochs=3, leadership_terms=(1, 2)
)
"""Three voters, leadership terms of node 1 and of node 2, and what was sent in the first."""

SMALL = replace(MODELS["crashes"], records=1)
"""Two epochs, a crash of each of three voters, and one record."""


def _obeys_former_leaders(patch: Patch) -> None:
    """A voter accepts a BeginQuorumEpoch request of an epoch that it has left."""
    refusal = leadership_term.refusal_of_voter_request

    def lax(core: CoreState, epoch: int, sender: int) -> ErrorCode | None:
        found = refusal(core, epoch, sender)
        if found == ErrorCode.FENCED_LEADER_EPOCH:
            core.election = replace(core.election, leader_id=sender)
            return None
        return found

    patch.setattr(leadership_term, "refusal_of_voter_request", lax)


def _leaders_obey_former_leaders(patch: Patch) -> None:
    """As before, but only a leader does: until it is one, it refuses."""
    refusal = leadership_term.refusal_of_voter_request

    def lax(core: CoreState, epoch: int, sender: int) -> ErrorCode | None:
        found = refusal(core, epoch, sender)
        if found == ErrorCode.FENCED_LEADER_EPOCH and isinstance(core.role, Leader):
            core.election = replace(core.election, leader_id=sender)
            return None
        return found

    patch.setattr(leadership_term, "refusal_of_voter_request", lax)


def _epoch_compared_once(patch: Patch) -> None:
    """A leader ignores the epoch of a replica that has fetched from it in this leadership term."""
    refusal = fetch_serving.refusal_of_fetch

    def trusting(core: CoreState, request: FetchRequest, *, serves: bool) -> ErrorCode | None:
        found = refusal(core, request, serves=serves)
        if found is not ErrorCode.FENCED_LEADER_EPOCH or not isinstance(core.role, Leader):
            return found
        known = (*core.role.remote.values(), *core.role.observers.values())
        has_fetched = any(
            progress.key == request.replica and progress.end_offset >= 0 for progress in known
        )
        return None if serves and has_fetched else found

    patch.setattr(fetch_serving, "refusal_of_fetch", trusting)


def _stale_voters(patch: Patch) -> None:
    install = snapshot_install.replace_log
    patch.setattr(
        snapshot_install, "replace_log", lambda core, made_of, _: install(core, made_of, ())
    )


@pytest.mark.parametrize(
    ("model", "break_it", "caught_by"),
    [
        (SMALL, elections.half_is_enough, "committed-on-majority"),
        (SMALL, elections.vote_without_looking, "leader-completeness"),
        (SMALL, voting.second_vote_in_an_epoch, "promises"),
        (SMALL, voting.vote_before_durable, "promises"),
        (SMALL, voting.newest_epoch_wins, "leader-completeness"),
        (SMALL, durability.acknowledge_before_flush, "promises"),
        (SMALL, durability.leadership_before_durable, "promises"),
        (SMALL, replicating.own_unflushed_end_counts, "committed-on-majority"),
        (SMALL, replicating.last_epoch_not_compared, "committed-on-majority"),
        (SMALL, _obeys_former_leaders, "stale-epoch"),
        pytest.param(
            MODELS["checkpoint"], _stale_voters, "leader-completeness", marks=pytest.mark.long
        ),
        pytest.param(
            MODELS["removals"],
            membership.change_before_own_commit,
            "leader-completeness",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_broken_core_is_shown_the_way_it_fails(
    model: Model, break_it: Callable[[Patch], None], caught_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Break one rule; the explorer ends with the shortest path to the violation."""
    break_it(monkeypatch)
    report = explore(model)
    assert report.violation is not None
    assert report.violation.name == caught_by
    story = list(report_lines(report))
    assert story[-1].startswith("VIOLATED")
    assert len([line for line in story if line[:3].strip().isdigit()]) == len(report.trace)


STORY_OF_2015 = """
1 timer | 2 VoteRequest 1 | 1 VoteResponse 2 | 3 VoteRequest 1 | 1 VoteResponse 3
1 remove 4
2 timer | 3 VoteRequest 2 | 2 VoteResponse 3 | 4 VoteRequest 2 | 2 VoteResponse 4
2 remove 1
4 BeginQuorumEpochRequest 2 | 2 FetchRequest 4 | 4 FetchResponse 2 | 2 FetchRequest 4
1 BeginQuorumEpochRequest 2 | 1 timer | 3 VoteRequest 1 | 1 VoteResponse 3
"""
"""Two leaders each remove a voter, and neither has committed anything of its epoch before."""


def _follow(space: Space, story: str) -> tuple[str, State]:
    """Take these steps, which the explorer must offer; what stopped the story, and the state."""
    state = space.first()
    for line in story.replace("|", "\n").strip().splitlines():
        node, what, *about = line.split()
        for step in space.steps(state):
            name, packet = step.event[0], step.packet
            if name == "deliver":
                under_way = space.table.packets[packet]
                name, who = type(under_way.message).__name__, under_way.sender
            else:
                who = step.event[1] if len(step.event) > 1 else 0
            if (str(space.ids[step.node]), name) == (node, what) and about in ([], [str(who)]):
                break
        else:
            return f"not offered: {line}", state
        try:
            made = space.take(state, step)
        except Violation as violation:
            return violation.name, state
        if made is None:
            return f"refused: {line}", state
        state = made
    return "no violation", state


def test_the_story_of_2015_is_a_way_through_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The intact core refuses the first removal; without the barrier the path ends as in 2015."""
    assert _follow(Space(MODELS["removals"]), STORY_OF_2015)[0] == "refused: 1 remove 4"
    membership.change_before_own_commit(monkeypatch)
    assert _follow(Space(MODELS["removals"]), STORY_OF_2015)[0] == "leader-completeness"


@pytest.mark.parametrize(
    "name",
    [
        "election",
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in sorted({*MODELS} - {"election"})
        ),
    ],
)
def test_a_model_holds_to_the_end(name: str) -> None:
    assert _clean(explore(MODELS[name])).is_complete


@pytest.mark.long
def test_a_refused_candidate_does_not_campaign_beyond_the_last_epoch() -> None:
    """A voter that was removed is refused again and again; a model without a bound has no end."""
    model = replace(MODELS["checkpoint"], epochs=3, records=0, stale=0)
    report = _clean(explore(model, states_max=50_000))
    assert report.is_complete
    assert report.space is not None
    assert max(node.epoch for node in report.space.table.locals) == model.epochs


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        MODELS["removals-stale"],
        replace(MODELS["checkpoint"], epochs=3, records=0),
    ],
    ids=lambda model: model.name,
)
def test_what_only_a_late_request_reveals(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break it: a leader ignores the epoch of a replica's Fetch once it knows the replica.

    A replica that waits for a response has not fetched in a later epoch, so only a request of an
    earlier leadership term that is still in flight shows the bug. Without such requests the model
    finds nothing.
    """
    _epoch_compared_once(monkeypatch)
    assert _clean(explore(replace(model, stale=0, late=0))).is_complete
    assert _clean(explore(replace(model, stale=0))).is_complete
    report = explore(model)
    assert report.violation is not None
    assert report.violation.name == "stale-epoch"


def test_an_announcement_refused_once_is_held_against_what_its_receiver_becomes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A voter refuses a BeginQuorumEpoch of the previous term as candidate, and obeys it as leader.

    An announcement waits for no answer in these models, so it is late from the beginning.
    """
    _leaders_obey_former_leaders(monkeypatch)
    assert _clean(explore(replace(TWO_LEADERSHIP_TERMS, stale=0))).is_complete
    report = explore(TWO_LEADERSHIP_TERMS)
    assert report.violation is not None
    assert report.violation.name == "stale-epoch"


LEFT_WHILE_ASKED = """
1 timer | 2 VoteRequest 1 | 1 VoteResponse 2
3 BeginQuorumEpochRequest 1
2 timer | 1 VoteRequest 2
"""
"""Node 3 waits for the response to its Fetch of epoch 2 while node 1 moves to epoch 3."""


@pytest.mark.parametrize(("stale", "left"), [(0, []), (LATE_ALL, [LATE])])
def test_a_request_refused_while_its_sender_waits_stays_for_when_it_gives_up(
    stale: int, left: list[int]
) -> None:
    space = Space(replace(TWO_LEADERSHIP_TERMS, stale=stale))
    followed, state = _follow(space, LEFT_WHILE_ASKED)
    assert followed == "no violation"
    assert FETCH in space.table.locals[state.locals[2]].waits
    packets = [space.table.packets[number] for number in state.packets]
    assert [each.number for each in packets if isinstance(each.message, FetchRequest)] == left
