"""Confirming linearizable reads by rounds of echoes (architecture 5.3).

``reads.ReadRounds`` keeps the books; here they meet the replicas.
"""

from __future__ import annotations

from quorum.core import majority
from quorum.core.fetch_answers import answer_from_log
from quorum.core.messages import ReadRound
from quorum.core.output import ReadConfirmed, ReadFailed
from quorum.core.progress import ReplicaProgress
from quorum.core.roles import Leader
from quorum.core.state import CoreState


def read(core: CoreState, token: int) -> None:
    """Let a read wait for its round, or fail it at once.

    Fails on anybody but a leader that has committed a record of its own epoch (before that its
    high watermark may lie below what an earlier leader acknowledged), and when too many wait.
    """
    leader = core.role
    if (
        not isinstance(leader, Leader)
        or not leader.can_write
        or len(leader.reads) >= core.config.pending_reads_max
    ):
        core.progress(ReadFailed(token))
    elif leader.reads.add(token, core.high_watermark):
        begin_round(core, leader)


def begin_round(core: CoreState, leader: Leader) -> None:
    """Announce the current read round; a lone voter has confirmed it by itself."""
    for fetch in leader.held.take_without_echo(leader.reads.stamp):
        answer_from_log(core, leader, fetch.sender, fetch.request)
    _confirm_reads(core, leader)


def note_echo(core: CoreState, leader: Leader, progress: ReplicaProgress, echo: ReadRound) -> None:
    """Count a voter's echo of a read round of this epoch."""
    if (
        progress.is_voter
        and echo.epoch == core.epoch
        and progress.read_round < echo.number <= leader.reads.stamp.number
    ):
        progress.read_round = echo.number
        _confirm_reads(core, leader)


def _confirm_reads(core: CoreState, leader: Leader) -> None:
    reads = leader.reads
    while reads.is_under_way:
        rounds = [progress.read_round for progress in leader.remote.values()]
        if leader.counts_itself:
            rounds.append(reads.stamp.number)
        confirmed = reads.confirm(majority.reached_by_majority(rounds))
        if not confirmed:
            return
        for read in confirmed:
            core.progress(ReadConfirmed(read.token, read.read_offset))
        if reads.is_under_way:
            for fetch in leader.held.take_without_echo(reads.stamp):
                answer_from_log(core, leader, fetch.sender, fetch.request)
