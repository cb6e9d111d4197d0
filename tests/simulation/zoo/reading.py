"""Broken replicas whose reads are stale or show uncommitted state."""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.controller import Controller
from quorum.core.contract.output import ReadConfirmed
from quorum.core.following import fetching
from quorum.core.messages.read_messages import NO_ROUND, ReadPositionRequest, ReadRound
from quorum.core.replication import (
    fetch_serving,
    read_confirmation,
    read_forwarding,
    snapshot_serving,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.read_rounds import PendingRead, ReadRounds
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Follower, Leader
from quorum.errors import ErrorCode
from quorum.types import NodeId
from tests.simulation.zoo.bug import Bug, Patch


def read_from_cached_leadership(patch: Patch) -> None:
    """A leader answers reads at once, without confirming that it still leads."""

    def add(core: CoreState, leader: Leader, read: PendingRead) -> None:
        read_confirmation._notify(core, read)

    patch.setattr(read_confirmation, "_add", add)


def read_by_lease(patch: Patch) -> None:
    """A leader answers reads at once if, by its own clock, a majority followed it recently."""
    add = read_confirmation._add

    def add_by_lease(core: CoreState, leader: Leader, read: PendingRead) -> None:
        since_ms = leader.reads.as_of_ms
        if since_ms >= 0 and core.now_ms - since_ms < core.config.fetch_timeout_ms:
            read_confirmation._notify(core, read)
        else:
            add(core, leader, read)

    patch.setattr(read_confirmation, "_add", add_by_lease)


def read_joins_a_round_under_way(patch: Patch) -> None:
    """A read is confirmed by a round that began before the read arrived."""
    add = ReadRounds.add

    def join(rounds: ReadRounds, read: PendingRead, now_ms: int) -> bool:
        if rounds.current:
            rounds.current.append(read)
            return False
        return add(rounds, read, now_ms)

    patch.setattr(ReadRounds, "add", join)


def any_fetch_confirms_reads(patch: Patch) -> None:
    """A leader counts every Fetch as an echo of its newest read round, even an old one."""
    note_echo = read_confirmation.note_echo

    def note_newest(
        core: CoreState, leader: Leader, progress: ReplicaProgress, echo: ReadRound
    ) -> None:
        note_echo(core, leader, progress, leader.reads.stamp)

    patch.setattr(fetch_serving, "note_echo", note_newest)
    patch.setattr(snapshot_serving, "note_echo", note_newest)


def round_of_an_earlier_epoch_counts(patch: Patch) -> None:
    """Read rounds are compared by number alone: an echo of an earlier leader's round counts."""
    fetch_from = fetching._fetch_from
    echoed: dict[int, tuple[CoreState, ReadRound]] = {}
    # Each core is kept beside its round, so that no other gets the same id meanwhile.

    def fetch_with_old_round(core: CoreState, peer: NodeId) -> None:
        role = core.role
        if isinstance(role, Follower):
            if role.read_round == NO_ROUND:
                _, role.read_round = echoed.get(id(core), (core, NO_ROUND))
            echoed[id(core)] = core, role.read_round
        fetch_from(core, peer)

    def note_number(
        core: CoreState, leader: Leader, progress: ReplicaProgress, echo: ReadRound
    ) -> None:
        if progress.is_voter and echo.number > progress.read_round:
            progress.read_round = echo.number
            read_confirmation.confirm_reads(core, leader)

    patch.setattr(fetching, "_fetch_from", fetch_with_old_round)
    patch.setattr(fetch_serving, "note_echo", note_number)
    patch.setattr(snapshot_serving, "note_echo", note_number)


def read_before_own_commit(patch: Patch) -> None:
    """A new leader confirms reads before it has committed a record of its own epoch."""
    refusal = read_confirmation._refusal

    def without_barrier(core: CoreState, request: ReadPositionRequest) -> ErrorCode | None:
        error = refusal(core, request)
        return None if error == ErrorCode.OFFSET_NOT_AVAILABLE else error

    patch.setattr(read_confirmation, "_refusal", without_barrier)


def follower_reads_its_own_watermark(patch: Patch) -> None:
    """A follower answers linearizable reads at its own high watermark, without the leader."""
    ask_position = read_forwarding.ask_position

    def answer_here(core: CoreState, token: int) -> None:
        if isinstance(core.role, Leader):
            ask_position(core, token)
        else:
            core.progress(ReadConfirmed(token, core.high_watermark))

    patch.setattr(read_forwarding, "ask_position", answer_here)


def read_without_waiting_for_the_image(patch: Patch) -> None:
    """A confirmed read is answered from the image although that is behind the read position."""

    def wait_applied(
        controller: Controller, offset: int, on_applied: Callable[[], None]
    ) -> Callable[[], None]:
        on_applied()
        return lambda: None

    patch.setattr(Controller, "wait_applied", wait_applied)


BUGS = (
    Bug(
        "read-from-cached-leadership",
        read_from_cached_leadership,
        ("read-rounds", "confirmed-reads", "history"),
        "etcd #20418",
    ),
    Bug(
        "read-by-lease",
        read_by_lease,
        ("read-rounds", "confirmed-reads", "history"),
        "Raft dissertation 6.4.1: leases rest on clocks",
    ),
    Bug(
        "read-joins-a-round-under-way",
        read_joins_a_round_under_way,
        ("read-rounds", "confirmed-reads", "history"),
        "Raft dissertation 6.4; etcd ReadIndex batches",
    ),
    Bug(
        "any-fetch-confirms-reads",
        any_fetch_confirms_reads,
        ("read-rounds", "confirmed-reads", "history"),
        "Raft dissertation 6.4: a round of its own",
    ),
    Bug(
        "round-of-an-earlier-epoch-counts",
        round_of_an_earlier_epoch_counts,
        ("read-rounds", "confirmed-reads", "history"),
        "Raft dissertation 6.4; ADR 9: a round belongs to an epoch",
        seeds=1_000,
    ),
    Bug(
        "read-before-own-commit",
        read_before_own_commit,
        ("confirmed-reads", "read-rounds", "history"),
        "Raft 8; etcd #741",
        seeds=1_000,
    ),
    Bug(
        "follower-reads-its-own-watermark",
        follower_reads_its_own_watermark,
        ("confirmed-reads", "history"),
        "Raft 8; Jepsen, etcd 0.4 and Consul: stale reads",
    ),
    Bug(
        "read-without-waiting-for-the-image",
        read_without_waiting_for_the_image,
        ("history",),
        "Raft dissertation 6.4, step 3",
    ),
)
