"""Broken replicas that count, compare or remember votes wrongly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from quorate.replica import boot, quarantined_log
from quorum.core.contract.output import Send
from quorum.core.contract.reasons import Rejection, VoteRejection
from quorum.core.election import voting
from quorum.core.messages.message_types import Message
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.replication import durability
from quorum.core.state.core_state import CoreState
from quorum.errors import LogDamagedError
from quorum.log.damage import Loss, quarantine
from quorum.log.election_store import ElectionFile
from quorum.ports import FileSystem
from quorum.types import NO_NODE, ElectionState, NodeId, OffsetAndEpoch
from tests.simulation.zoo.bug import Bug, Patch
from tests.simulation.zoo.rejections import BY_LOG, without


def epoch_reset_at_start(patch: Patch) -> None:
    """A restarted node takes its epoch from its log, not from ``quorum-state``.

    That its other files know of a later epoch is not looked at either.
    """
    load = ElectionFile.load

    def load_without_epoch(file: ElectionFile) -> ElectionState:
        return replace(load(file), epoch=0, leader_id=NO_NODE, voted=None)

    patch.setattr(ElectionFile, "load", load_without_epoch)
    patch.setattr(boot, "check_newest", lambda *_: None)


def second_vote_in_an_epoch(patch: Patch) -> None:
    """A voter grants its vote to the next candidate, although it has voted in this epoch."""
    why_not_grant = voting.why_not_grant

    def forgets_its_vote(core: CoreState, request: VoteRequest) -> Rejection | None:
        rejection = why_not_grant(core, request)
        return without(rejection, VoteRejection.VOTED_FOR_ANOTHER)

    patch.setattr(voting, "why_not_grant", forgets_its_vote)


def vote_before_durable(patch: Patch) -> None:
    """Votes and vote requests are sent before the vote is on disk."""

    def send(core: CoreState, to: NodeId, message: Message) -> None:
        core.out.immediate.append(Send(to, message))

    patch.setattr(CoreState, "send", send)


def longest_log_wins(patch: Patch) -> None:
    """A voter compares the lengths of logs, not the epochs of their last records."""
    why_not_grant = voting.why_not_grant

    def by_length(core: CoreState, request: VoteRequest) -> Rejection | None:
        rejection = why_not_grant(core, request)
        is_long = request.last.offset >= core.position.offset
        return without(rejection, *BY_LOG) if is_long else rejection

    patch.setattr(voting, "why_not_grant", by_length)


def newest_epoch_wins(patch: Patch) -> None:
    """A voter compares only the epochs of the last records; with equal epochs any length wins."""
    why_not_grant = voting.why_not_grant

    def by_epoch(core: CoreState, request: VoteRequest) -> Rejection | None:
        rejection = why_not_grant(core, request)
        is_new = request.last.epoch >= core.position.epoch
        return without(rejection, *BY_LOG) if is_new else rejection

    patch.setattr(voting, "why_not_grant", by_epoch)


def vote_floor_lifted_early(patch: Patch) -> None:
    """A replica that lost records drops its vote floor at the first write that completes."""

    def lift(core: CoreState, floor: OffsetAndEpoch) -> None:
        state = core.election
        core.save_election(ElectionState(state.epoch, state.leader_id, state.voted, None))

    patch.setattr(durability, "_lift_vote_floor", lift)


def vote_floor_bounded_by_the_epoch_file(patch: Patch) -> None:
    """The vote floor is bounded by the epoch file's last epoch, and that file may be stale."""

    def believe_the_file(
        fs: FileSystem, directory: Path, damage: LogDamagedError, **rest: Any
    ) -> Loss:
        return quarantine(fs, directory, damage, **{**rest, "epoch_max": None})

    for module in (boot, quarantined_log):
        patch.setattr(module, "quarantine", believe_the_file)


BUGS = (
    Bug(
        "epoch-reset-at-start",
        epoch_reset_at_start,
        ("durable-survives",),
        "Raft figure 2: currentTerm is persistent",
    ),
    Bug(
        "second-vote-in-an-epoch",
        second_vote_in_an_epoch,
        ("promises", "one-leader", "one-vote"),
        "Raft 5.2; figure 2, votedFor",
    ),
    Bug("vote-before-durable", vote_before_durable, ("promises",), "PySyncObj #202; Raft 5"),
    Bug(
        "longest-log-wins",
        longest_log_wins,
        ("leader-completeness", "committed-stays"),
        "Raft 5.4.1; KAFKA, leader by log end offset",
        seeds=600,
    ),
    Bug(
        "newest-epoch-wins",
        newest_epoch_wins,
        ("leader-completeness", "committed-stays"),
        "Raft 5.4.1",
    ),
    Bug(
        "vote-floor-lifted-early",
        vote_floor_lifted_early,
        ("leader-completeness", "committed-stays"),
        "ADR 7",
        seeds=600,
    ),
    Bug(
        "vote-floor-bounded-by-the-epoch-file",
        vote_floor_bounded_by_the_epoch_file,
        ("leader-completeness", "committed-stays"),
        "found by the simulation, seed 120 of an earlier state",
        scenario="damage/floor_with_an_older_epoch_file.scn",
    ),
)
