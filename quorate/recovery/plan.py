"""The rules of a recovery: DESIGN.md has them in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorate.recovery.errors import RecoveryRefusedError
from quorate.recovery.survivor import Survivor
from quorate.replica.log_incarnation import incarnation_text, is_unfinished
from quorum.core.voters.majority import quorum_size
from quorum.types import ReplicaKey


@dataclass(frozen=True, slots=True)
class Dropped:
    """Records [start_offset, end_offset) of another survivor that the chosen log does not have."""

    survivor: Survivor
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What the survivors have, and what going on with the newest log would mean."""

    chosen: Survivor
    """Its log would go on."""
    survivors: tuple[Survivor, ...]
    voters: tuple[ReplicaKey, ...]
    """By the chosen log."""
    missing: tuple[ReplicaKey, ...]
    """The voters of which no usable disk was given."""
    has_majority: bool
    """A majority of the voters is left, so the quorum can elect a leader by itself."""
    kept_end: int
    """Everything below is committed, and kept."""
    dropped: tuple[Dropped, ...]
    """None of it was committed."""

    @property
    def forced_end(self) -> int:
        """The records in [kept_end, forced_end) would become committed, whether they were or not.

        Whether lost voters committed others from ``kept_end`` on is unknown; those are lost.
        """
        return self.chosen.end.offset


def make_plan(survivors: Sequence[Survivor]) -> RecoveryPlan:
    """Return the plan for these directories.

    Raises:
        RecoveryRefusedError: They are not of one cluster, one is given twice, none has a log that
            may go on, or they contradict one another.
    """
    _check(survivors)
    usable = [each for each in survivors if not each.disqualified]
    candidates = [each for each in usable if not _lacks_acknowledged(each)]
    if not candidates:
        raise RecoveryRefusedError(
            "no directory may go on: each is disqualified, or has lost records that it had "
            "acknowledged; find another copy, or a backup"
        )
    chosen = max(candidates, key=_age)
    kept_end = max(each.committed_end for each in survivors)
    if kept_end > chosen.end.offset:
        owner = max(survivors, key=lambda each: each.committed_end)
        raise RecoveryRefusedError(
            f"{owner.data_dir} knows that everything below {kept_end} is committed, but the newest "
            f"log that may go on, in {chosen.data_dir}, ends at {chosen.end.offset}; find another "
            "copy, or a backup"
        )
    missing = tuple(
        voter for voter in chosen.voters if not any(each.key.matches(voter) for each in usable)
    )
    present = len(chosen.voters) - len(missing)
    return RecoveryPlan(
        chosen,
        tuple(survivors),
        chosen.voters,
        missing,
        bool(chosen.voters) and present >= quorum_size(len(chosen.voters)),
        kept_end,
        tuple(_dropped(chosen, survivors)),
    )


def _check(survivors: Sequence[Survivor]) -> None:
    first = survivors[0]
    seen: dict[bytes, Survivor] = {}
    for each in survivors:
        if is_unfinished(each.named_incarnation_id, each.incarnation):
            raise RecoveryRefusedError(
                f"{each.data_dir}: a recovery of this directory was interrupted; `quorate recover "
                "apply` on it finishes it"
            )
        if each.named_incarnation_id != first.named_incarnation_id:
            raise RecoveryRefusedError(
                f"{first.data_dir} is of {incarnation_text(first.named_incarnation_id)} of the "
                f"log, {each.data_dir} of {incarnation_text(each.named_incarnation_id)}: leave out "
                "the directories of the one that was given up"
            )
        if each.cluster_id != first.cluster_id:
            raise RecoveryRefusedError(
                f"{first.data_dir} belongs to cluster {first.cluster_id}, {each.data_dir} to "
                f"{each.cluster_id}"
            )
        other = seen.setdefault(each.key.directory_id, each)
        if other is not each:
            raise RecoveryRefusedError(
                f"{other.data_dir} and {each.data_dir} are copies of one disk: give the newer one "
                "only"
            )


def _age(survivor: Survivor) -> tuple[int, int]:
    """Return what Raft compares before a vote."""
    return (survivor.end.epoch, survivor.end.offset)


def _lacks_acknowledged(survivor: Survivor) -> bool:
    floor = survivor.vote_floor
    if floor is None:
        return False
    return _age(survivor) < (floor.epoch, floor.offset)


def _dropped(chosen: Survivor, survivors: Iterable[Survivor]) -> Iterable[Dropped]:
    for each in survivors:
        if each is not chosen:
            # What the chosen log has trimmed is committed.
            common = max(common_end(each, chosen), chosen.start_offset)
            if common < each.end.offset:
                yield Dropped(each, common, each.end.offset)


def common_end(first: Survivor, second: Survivor) -> int:
    """Return the offset up to which both logs are the same, by their epochs (Log Matching).

    0 if no epoch is common.
    """
    ends = _ends(second)
    common = 0
    for epoch, end in _ends(first).items():
        if epoch in ends:
            common = max(common, min(end, ends[epoch]))
    return common


def _ends(survivor: Survivor) -> dict[int, int]:
    """Return where each epoch ends in the log that is left."""
    starts = survivor.epochs
    if not starts:
        return {survivor.end.epoch: survivor.end.offset}
    bounds = [each.start_offset for each in starts[1:]] + [survivor.end.offset]
    return {each.epoch: end for each, end in zip(starts, bounds, strict=True)}
