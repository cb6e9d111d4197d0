"""Plans and reports of recoveries as values that JSON has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import ZERO_UUID, ReplicaKey, uuid_to_text

if TYPE_CHECKING:
    from quorate.recovery.plan import RecoveryPlan
    from quorate.recovery.survivor import Survivor


def recovery_report(
    plan: RecoveryPlan, *, reason: str, by: str, at_ms: int, tool_version: str
) -> dict[str, object]:
    """Return what the log keeps of a recovery; ``at_ms`` is milliseconds since 1970."""
    return {
        "operation": "recovery",
        "at_ms": at_ms,
        "by": by,
        "reason": reason,
        "tool_version": tool_version,
        **plan_document(plan),
    }


def incarnation_document(incarnation: LogIncarnation) -> dict[str, object] | None:
    """Return an incarnation; None for the first one."""
    if incarnation == FIRST_INCARNATION:
        return None
    is_second = incarnation.previous_id == ZERO_UUID
    return {
        "number": incarnation.number,
        "id": uuid_to_text(incarnation.id),
        "previous_id": None if is_second else uuid_to_text(incarnation.previous_id),
        "kept_end_offset": incarnation.kept.offset,
        "kept_end_epoch": incarnation.kept.epoch,
    }


def plan_document(plan: RecoveryPlan) -> dict[str, object]:
    """Return a plan, without the records themselves."""
    return {
        "cluster_id": plan.chosen.cluster_id,
        "log_incarnation": incarnation_document(plan.chosen.incarnation),
        "has_majority": plan.has_majority,
        "voters": [key_document(each) for each in plan.voters],
        "missing_voters": [key_document(each) for each in plan.missing],
        "survivors": [_survivor(plan, each) for each in plan.survivors],
        "chosen": str(plan.chosen.data_dir),
        "kept_end": plan.kept_end,
        "forced_end": plan.forced_end,
        "dropped": [
            {
                "data_dir": str(each.survivor.data_dir),
                "start_offset": each.start_offset,
                "end_offset": each.end_offset,
            }
            for each in plan.dropped
        ],
        "unknown_from": None if plan.has_majority else plan.kept_end,
    }


def _survivor(plan: RecoveryPlan, each: Survivor) -> dict[str, object]:
    return {
        "data_dir": str(each.data_dir),
        **key_document(each.key),
        "is_voter": any(each.key.matches(voter) for voter in plan.voters),
        "end_offset": each.end.offset,
        "end_epoch": each.end.epoch,
        "committed_end": each.committed_end,
        "lost_records_up_to": None if each.vote_floor is None else each.vote_floor.offset,
        "disqualified": each.disqualified or None,
        "checkpoint_problems": list(each.checkpoint_problems),
        "torn_tail": each.torn_tail or None,
        "newest_epoch": each.newest_epoch,
    }


def key_document(key: ReplicaKey) -> dict[str, object]:
    """Return a replica; the directory id is None if it is not known."""
    known = key.directory_id != ZERO_UUID
    return {"node_id": key.id, "directory_id": uuid_to_text(key.directory_id) if known else None}
