"""The search for the first batch that differs: what is asked, and which answers count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.core.contract.events import DivergenceResolutionEnded, DivergenceResolutionStarted
from quorum.core.contract.outcomes import DivergenceOutcome
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.errors import ErrorCode
from quorum.types import DigestAt
from tests.support.core_disk import key
from tests.unit.core.integrity.test_core_divergence_resolution import (
    OURS,
    THEIRS,
    History,
    Table,
    begun,
    history,
)

QUIET_MS = 60_000
ABSENT = DigestAt(-1, b"")


def asked(table: Table, peer: int) -> list[ChainDigestRequest]:
    return [
        each
        for by, to, each in table.cluster.sent
        if (by, to) == (table.me, peer) and isinstance(each, ChainDigestRequest)
    ]


def started(table: Table) -> int:
    return sum(isinstance(each, DivergenceResolutionStarted) for each in table.member.events)


def from_offset(begin: int, held: History) -> History:
    """The digests of a log that begins at ``begin``; nothing is known of what lies below."""
    return lambda offset: ABSENT if offset < begin else held(offset)


def test_one_at_a_time_and_none_for_a_minute_after_one_that_changed_nothing() -> None:
    """Each reads the whole log again."""
    table = begun(n3=OURS)
    table.open()
    assert started(table) == 1
    table.run()
    settled = table.settled()
    assert settled is not None
    assert settled.outcome is DivergenceOutcome.WON
    table.cluster.now_ms += QUIET_MS - 1
    table.open()
    assert started(table) == 1
    table.cluster.now_ms += 1
    table.open()
    assert started(table) == 2


def test_a_log_that_is_known_to_be_wrong_is_not_searched_again() -> None:
    table = begun(n3=THEIRS)
    table.run()
    assert table.is_quarantined
    table.cluster.now_ms += QUIET_MS
    table.open()
    assert started(table) == 1


def test_digests_are_asked_for_evenly_from_below_the_first_record_to_the_end() -> None:
    """The end is asked for once; later requests lie between an equal and a different offset."""
    table = begun(n3=OURS)
    first = asked(table, 2)[0].offsets
    assert first == tuple(sorted({*first}))
    assert first[-1] == 40
    steps = {later - earlier for earlier, later in zip((-1, *first), first, strict=False)}
    assert max(steps) - min(steps) <= 1
    table.run()
    later = [each.offsets for each in asked(table, 2)[1:]]
    assert all(10 <= offset < 20 for offsets in later for offset in offsets)
    assert asked(table, 3)[0].offsets == (15, 40), "where the answers first differ, and the end"


def test_a_long_log_takes_few_requests() -> None:
    """Method: a difference in the middle of a log of a million records."""
    table = Table()
    boundaries = range(0, 1_000_000, 10)
    common = 500_000

    def held(mark: bytes) -> History:
        def digest_before(offset: int) -> DigestAt:
            found = boundaries[max(0, min(offset, 999_990)) // 10]
            return DigestAt(found, (b"" if found <= common else mark) + b"%d" % found)

        return digest_before

    ours, theirs = held(b"o"), held(b"t")
    table.answers = {2: theirs, 3: ours}
    table.cluster.propose(1, 1_000_000 - table.cluster[1].log_end_offset)
    table.open()
    table.verified()
    for _ in range(40):
        if table.settled():
            break
        (_, peer, request) = table.cluster.sent[-1]
        assert isinstance(request, ChainDigestRequest)
        answer_with(table, peer, request, own=tuple(map(ours, request.offsets)))
    settled = table.settled()
    assert settled is not None
    assert (settled.outcome, settled.first_offset) == (DivergenceOutcome.WON, common)
    assert len(asked(table, 2)) <= 6


def answer_with(table: Table, peer: int, request: ChainDigestRequest, **fields: Any) -> None:
    values: dict[str, Any] = {
        "request_id": request.request_id,
        "error": ErrorCode.NONE,
        "leader_id": 1,
        "epoch": table.cluster[table.me].epoch,
        "offsets": request.offsets,
        "points": tuple(map(table.answers[peer], request.offsets)),
        "own": tuple(map(OURS, request.offsets)),
        "replica": key(peer),
        **fields,
    }
    response = ChainDigestResponse(**values)
    now_ms = table.cluster.now_ms
    table.cluster.call(table.me, lambda node: node.receive(now_ms, peer, response))


FLAWS: dict[str, dict[str, Any]] = {
    "an error": {"error": ErrorCode.UNKNOWN_SERVER_ERROR},
    "other offsets": {"offsets": (3, 40), "points": (THEIRS(3), THEIRS(40))},
    "too few digests": {"points": (THEIRS(40),)},
    "too few digests of its own": {"own": (OURS(40),)},
    "no digests at all": {"points": (), "own": ()},
    "of another voter": {"replica": key(3)},
    "of another disk": {"replica": replace(key(2), directory_id=b"x" * 16)},
    "of nobody": {"replica": None},
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flawed_answer_is_a_failure_and_the_third_ends_the_search(flaw: str) -> None:
    """Its digests, right or wrong, count for nothing."""
    table = begun(n3=OURS)
    for failures in (1, 2, 3):
        assert len(asked(table, 2)) == failures
        answer_with(table, 2, asked(table, 2)[-1], **FLAWS[flaw])
        table.cluster.now_ms += table.cluster.config.request_timeout_ms
        table.cluster.tick(1)
    ended = [e for e in table.member.events if isinstance(e, DivergenceResolutionEnded)]
    assert [each.outcome for each in ended] == [DivergenceOutcome.SILENT]
    assert len(asked(table, 2)) == 3


def test_an_answer_of_a_later_epoch_names_its_leader() -> None:
    table = begun()
    answer_with(table, 2, asked(table, 2)[-1], leader_id=3, epoch=table.cluster[1].epoch + 1)
    assert (table.cluster[1].role_name, table.cluster[1].leader_id) == ("Follower", 3)


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_below_the_start_of_one_log_nothing_can_be_compared(side: str) -> None:
    """The first difference may lie anywhere below, so the log is wrong from its beginning on."""
    table = begun(n3=OURS)
    table.answers[2] = from_offset(30, THEIRS) if side == "theirs" else THEIRS
    ours = from_offset(30, OURS) if side == "ours" else OURS
    for _ in range(30):
        if table.settled():
            break
        _, peer, request = table.cluster.sent[-1]
        assert isinstance(request, ChainDigestRequest)
        answer_with(table, peer, request, own=tuple(map(ours, request.offsets)))
    settled = table.settled()
    assert settled is not None
    assert (settled.outcome, settled.first_offset) == (DivergenceOutcome.WON, 0)
    assert asked(table, 3)[-1].offsets == (30, 40)


def test_two_voters_have_no_third_to_decide_a_divergence() -> None:
    table = begun(2)
    table.run()
    settled = table.settled()
    assert settled is not None
    assert settled.outcome is DivergenceOutcome.UNDECIDED


def test_a_voter_that_has_answered_is_not_asked_again_and_one_that_has_not_is() -> None:
    """Of five: two hold ours with the leader's own, two do not answer."""
    table = begun(5, n3=OURS)
    table.run()
    for _ in range(3):
        table.cluster.now_ms += table.cluster.config.request_timeout_ms
        table.cluster.tick(1)
    counts = [len(asked(table, each)) for each in (3, 4, 5)]
    assert counts[0] == 1
    assert min(counts[1:]) >= 2
    assert table.settled() is None


def test_a_voter_that_lags_is_asked_again_after_its_pause() -> None:
    table = begun(n3=history(end=5, mark="-", common=5))
    table.run()
    assert len(asked(table, 3)) == 1
    table.cluster.now_ms += table.cluster.config.retry_backoff_ms
    table.cluster.tick(1)
    assert len(asked(table, 3)) == 2
