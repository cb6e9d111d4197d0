"""The quorum's arithmetic as commands show it: from the leader's answer to rows of a table."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.cli.exits import CliError, Exit
from quorate.cli.output import Result
from quorate.client.results.admin import DescribeQuorumResponse, QuorumReplica
from quorate.quorum_arithmetic import PATIENCE_MS, QuorumStatus, Replica
from quorum.types import uuid_to_text

COLUMNS = ("voters", "majority", "tolerated", "able", "margin", "may_fail_next")


def voters_of(answer: DescribeQuorumResponse, *, probed_at_ms: int = -1) -> QuorumStatus:
    """The voters as their leader sees them.

    With ``probed_at_ms``, a time by the leader's clock, only those count that have fetched since.

    Raises:
        CliError: UNREACHABLE when it is not the leader's answer: only the leader knows.
    """
    if not answer.is_leader:
        raise CliError(
            "the quorum has no leader that can be reached; only a leader knows who is caught up",
            hint="`quorum describe status --any-node` shows what a node knows",
            code=Exit.UNREACHABLE,
        )
    return QuorumStatus(tuple(_replica(answer, each, probed_at_ms) for each in answer.voters))


def observers_of(answer: DescribeQuorumResponse) -> list[Replica]:
    """Everybody else who fetches, as the leader sees them."""
    return [_replica(answer, each) for each in answer.observers]


def _replica(
    answer: DescribeQuorumResponse, each: QuorumReplica, probed_at_ms: int = -1
) -> Replica:
    is_known = each.log_end_offset >= 0
    return Replica(
        each.replica_id,
        each.directory_id,
        max(0, answer.log_end_offset - each.log_end_offset) if is_known else -1,
        _age_ms(answer, each.last_fetch_timestamp_ms),
        _age_ms(answer, each.last_caught_up_timestamp_ms),
        each.replica_id == answer.leader_id and each.directory_id == answer.directory_id,
        answer.check_quorum_ms or PATIENCE_MS,
        _age_ms(answer, probed_at_ms),
    )


def _age_ms(answer: DescribeQuorumResponse, timestamp_ms: int) -> int:
    return max(0, answer.timestamp_ms - timestamp_ms) if timestamp_ms >= 0 else -1


def status_fields(status: QuorumStatus) -> dict[str, object]:
    """A voter set in numbers."""
    return {
        "voters": [each.id for each in status.voters],
        "majority": status.majority,
        "tolerated": status.tolerated,
        "able": [each.id for each in status.able],
        "margin": status.margin,
        "may_fail_next": list(status.may_fail_next),
    }


def unable_fields(status: QuorumStatus) -> list[dict[str, object]]:
    """Who cannot be counted on, and why."""
    return [
        {"id": each.id, "condition": each.condition.value, "lag": each.lag,
         "silent_ms": each.silent_ms}
        for each in status.unable
    ]  # fmt: skip


def comparison(
    kind: str,
    fields: dict[str, object],
    sets: Iterable[tuple[str, QuorumStatus]],
    *,
    objections: list[str],
    warnings: list[str],
) -> Result:
    """Voter sets beneath each other, with the objections to the step between them."""
    return Result(
        kind,
        {**fields, "objections": objections, "warnings": warnings},
        rows=[{"when": name, **status_fields(each)} for name, each in sets],
        columns=("when", *COLUMNS),
    )


def directory_text(directory_id: bytes) -> str | None:
    """A directory id for people; None when it is not known."""
    return uuid_to_text(directory_id) if any(directory_id) else None
