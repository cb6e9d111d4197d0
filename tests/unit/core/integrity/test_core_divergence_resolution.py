"""Divergence resolution: requests, responses that count, and the effects on this replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorum.core.contract.events import DivergenceResolutionEnded, LogQuarantined, TruncationRefused
from quorum.core.contract.local_events import LogVerified, RequestFailed
from quorum.core.contract.outcomes import DivergenceOutcome
from quorum.core.contract.output import QuarantineLog, SaveElectionState, VerifyLog
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.state.digest_tally import NOTHING, Difference, Held
from quorum.errors import ErrorCode
from quorum.types import DigestAt, OffsetAndEpoch, ReplicaKey
from simulation.harness import arrival
from tests.support.core_cluster import CLUSTER, CoreCluster, Member
from tests.support.core_disk import key

History = Callable[[int], DigestAt]


def history(*boundaries: int, end: int, mark: str, common: int = 0) -> History:
    """A log with these batch boundaries; equal to every other one up to ``common``."""

    def digest_before(offset: int) -> DigestAt:
        found = max((each for each in (0, *boundaries, end) if each <= min(offset, end)), default=0)
        text = f"common {found}" if found <= common else f"{mark} {found}"
        return DigestAt(found, text.encode())

    return digest_before


OURS = history(10, 20, 30, end=40, mark="ours", common=10)
THEIRS = history(10, 15, 20, 30, end=40, mark="theirs", common=10)


class Table:
    """A leader or follower in a divergence, and the responses of the others."""

    def __init__(self, voters: int = 3, *, leads: bool = True) -> None:
        self.cluster = CoreCluster(voters=range(1, voters + 1))
        self.cluster.elect(1)
        self.cluster.propose(1, 40 - self.cluster[1].log_end_offset)
        self.cluster.settle()
        assert self.cluster[2].high_watermark == self.cluster[2].log_end_offset == 40
        self.last_fetch = self.cluster.sent_by(2, FetchRequest)[-1]
        self.me, self.other = (1, 2) if leads else (2, 1)
        self.answers: dict[int, History] = {self.other: THEIRS}
        self.disks: dict[int, ReplicaKey] = {}  # where it is not the voter's
        self.cluster.queue.clear()
        self.cluster.sent.clear()
        for each in self.cluster.members:
            if each != self.me:
                self.cluster.members[each].is_up = False

    @property
    def member(self) -> Member:
        return self.cluster.members[self.me]

    def open(self) -> None:
        """The two digests are seen to differ at the log end."""
        node, now_ms = self.cluster[self.me], self.cluster.now_ms
        if self.me == 1:
            fetch = FetchRequest(
                7, CLUSTER, key(2), node.epoch, node.log_end_offset, node.epoch, digest=b"t"
            )
            self.cluster.call(
                1, lambda node: node.receive(now_ms, 2, arrival.received(fetch, own_digest=b"o"))
            )
            return
        request_id = self.last_fetch.request_id
        refusal = FetchResponse(request_id, ErrorCode.DIGEST_MISMATCH, 1, node.epoch)
        self.cluster.call(2, lambda node: node.receive(now_ms, 1, refusal))

    def verified(self, damaged_offset: int = -1) -> None:
        """The own files have been read again."""
        event = LogVerified(0, damaged_offset, "a bad batch")
        self.cluster.call(self.me, lambda node: node.on_local_event(self.cluster.now_ms, event))

    def run(self, *, silent: tuple[int, ...] = (), rounds: int = 30) -> None:
        """Answer its requests until there are no more; the clock does not move."""
        done = 0
        for _ in range(rounds):
            asked = [
                each
                for each in self.cluster.sent[done:]
                if each[0] == self.me and isinstance(each[2], ChainDigestRequest)
            ]
            done = len(self.cluster.sent)
            if not asked:
                return
            for _, peer, request in asked:
                assert isinstance(request, ChainDigestRequest)
                if peer not in silent and peer in self.answers:
                    self.reply(peer, request)

    def reply(self, peer: int, request: ChainDigestRequest) -> None:
        response = ChainDigestResponse(
            request.request_id,
            ErrorCode.NONE,
            1,
            self.cluster[self.me].epoch,
            request.offsets,
            points=tuple(map(self.answers[peer], request.offsets)),
            own=tuple(map(OURS, request.offsets)),
            replica=self.disks.get(peer, key(peer)),
        )
        now_ms = self.cluster.now_ms
        self.cluster.call(self.me, lambda node: node.receive(now_ms, peer, response))

    def settled(self) -> DivergenceResolutionEnded | None:
        found = [each for each in self.member.events if isinstance(each, DivergenceResolutionEnded)]
        return found[-1] if found else None

    @property
    def is_quarantined(self) -> bool:
        return any(isinstance(each, LogQuarantined) for each in self.member.events)


def begun(voters: int = 3, *, leads: bool = True, **answers: History) -> Table:
    """Return a divergence with intact local files; ``n3=...`` is the log of voter 3."""
    table = Table(voters, leads=leads)
    table.answers |= {int(name[1:]): held for name, held in answers.items()}
    table.open()
    table.verified()
    return table


@pytest.mark.parametrize("leads", [True, False])
def test_a_majority_for_this_log_ends_it_without_a_quarantine(leads: bool) -> None:
    table = begun(leads=leads, n3=OURS)
    table.run()
    settled = table.settled()
    assert settled is not None
    assert (settled.outcome, settled.first_offset) == (DivergenceOutcome.WON, 10)
    assert not table.is_quarantined


@pytest.mark.parametrize("leads", [True, False])
def test_a_majority_against_us_quarantines_us_with_a_floor(leads: bool) -> None:
    table = begun(leads=leads, n3=THEIRS)
    table.run()
    floors = [
        each.state.vote_floor
        for each in table.member.effects
        if isinstance(each, SaveElectionState) and each.state.vote_floor is not None
    ]
    end = table.cluster[table.me].log_end
    quarantined_log = [each for each in table.member.effects if isinstance(each, QuarantineLog)]
    assert floors == [end]
    assert [(each.first_offset, each.is_history) for each in quarantined_log] == [(10, True)]
    assert table.cluster[table.me].role_name == ("Resigned" if leads else "Follower")


@pytest.mark.parametrize("common", [0, 10])
def test_a_log_with_nothing_in_common_bars_its_disk(common: int) -> None:
    """Goal: a lone founder that was wiped and bootstrapped anew forgot its votes, and votes no
    more.
    """
    theirs = history(10, 15, 20, 30, end=40, mark="theirs", common=common)
    table = Table(leads=False)
    table.answers = {1: theirs, 3: theirs}
    table.open()
    table.verified()
    table.run()
    assert table.is_quarantined
    assert bool(table.cluster[2].disqualified) is (common == 0)


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("lag_end", [0, 5, 10])
def test_a_voter_that_lags_decides_nothing(leads: bool, lag_end: int) -> None:
    """Goal: a log that ends within the common part counts for no side, and no node stops for it.

    The batch boundary before the difference is the same for the lagging voter and for whichever
    side has the longer batch there, so it must not pass for that side's history.
    """
    table = begun(leads=leads, n3=history(end=lag_end, mark="common", common=lag_end))
    table.run()
    assert table.settled() is None
    assert not table.is_quarantined
    for held, outcome in ((OURS, DivergenceOutcome.WON), (THEIRS, DivergenceOutcome.LOST)):
        fresh = begun(leads=leads, n3=history(end=lag_end, mark="-", common=lag_end))
        fresh.run()
        fresh.cluster.sent.clear()
        fresh.answers[3] = held
        for _ in range(8):
            fresh.cluster.now_ms += 500
            fresh.cluster.tick(fresh.me)
            fresh.run()
        settled = fresh.settled()
        assert settled is not None
        assert settled.outcome is outcome


def test_two_of_five_that_lag_leave_it_to_the_other_three() -> None:
    lagging = history(end=10, mark="-", common=10)
    table = begun(5, n3=lagging, n4=lagging, n5=OURS)
    table.run()
    assert table.settled() is None, "two of five hold ours"
    table = begun(5, n3=lagging, n4=OURS, n5=OURS)
    table.run()
    assert table.settled() is not None
    assert not table.is_quarantined


def test_without_a_majority_it_stops_and_touches_nothing() -> None:
    table = begun(n3=history(12, 20, 30, end=40, mark="third", common=10))
    table.run()
    quarantined_log = [each for each in table.member.effects if isinstance(each, QuarantineLog)]
    assert [each.is_history for each in quarantined_log] == [False]
    assert not any(
        isinstance(each, SaveElectionState) and each.state.vote_floor is not None
        for each in table.member.effects
    )


def test_the_compared_end_and_the_open_resolution_of_a_replica_are_reported() -> None:
    """Goal: describe-quorum and readiness. Method: an equal digest, a different one, a verdict."""
    table = Table()
    node, now_ms = table.cluster[1], table.cluster.now_ms
    fetch = FetchRequest(7, CLUSTER, key(2), node.epoch, 40, node.epoch, digest=b"o")
    table.cluster.call(
        1, lambda node: node.receive(now_ms, 2, arrival.received(fetch, own_digest=b"o"))
    )
    assert {each.key.id: each.compared_end for each in node.replicas()} == {1: -1, 2: 40, 3: -1}
    assert node.chain.log_problem == ""
    table.open()
    assert node.chain.log_problem == (
        "the log differs from that of node 2: reading its own files again"
    )
    table.verified(damaged_offset=20)
    assert node.chain.log_problem == "this log is wrong: a bad batch"


def test_silence_decides_nothing() -> None:
    table = begun(n3=OURS)
    table.run(silent=(3,))
    for request in table.cluster.sent_by(1, ChainDigestRequest):
        failed = RequestFailed(3, request.request_id)
        table.cluster.call(
            1, lambda node, event=failed: node.on_local_event(table.cluster.now_ms, event)
        )
    assert table.settled() is None
    assert not table.is_quarantined


def test_a_silent_conflicting_peer_is_given_up_and_may_be_compared_again() -> None:
    table = begun()
    for _ in range(3):
        table.cluster.now_ms += 10_000
        table.cluster.tick(1)
        table.cluster.now_ms += 10_000
        table.cluster.tick(1)
    settled = table.settled()
    assert settled is not None
    assert settled.outcome is DivergenceOutcome.SILENT
    assert table.cluster[1].chain.quiet_until_ms <= table.cluster.now_ms


def test_local_damage_settles_it_before_any_request() -> None:
    table = Table()
    table.open()
    assert [each for each in table.member.progress if isinstance(each, VerifyLog)]
    table.verified(damaged_offset=20)
    assert table.is_quarantined
    assert not table.cluster.sent_by(1, ChainDigestRequest)
    assert table.cluster[1].role_name == "Resigned"


def test_an_observer_is_not_asked_and_does_not_count() -> None:
    """Goal: an observer, also one with a voter's id on another disk, counts for no side."""
    table = Table()
    node, now_ms = table.cluster[1], table.cluster.now_ms
    observer = replace(key(2), directory_id=b"w" * 16)
    end_offset = node.log_end_offset
    fetch = FetchRequest(7, CLUSTER, observer, node.epoch, end_offset, node.epoch, digest=b"t")
    received = arrival.received(fetch, own_digest=b"o")
    table.cluster.call(1, lambda node: node.receive(now_ms, 2, received))
    table.verified()
    assert not table.cluster.sent_by(1, ChainDigestRequest)
    settled = table.settled()
    assert settled is not None
    assert settled.outcome is DivergenceOutcome.INTACT


def test_a_refused_truncation_opens_a_divergence_resolution() -> None:
    """Goal: a leader that asks for a cut below the high watermark is not believed (279.4)."""
    table = Table(leads=False)
    node = table.cluster[2]
    assert node.high_watermark > 10
    cut = FetchResponse(
        table.last_fetch.request_id,
        ErrorCode.NONE,
        1,
        node.epoch,
        high_watermark=5,
        diverging=OffsetAndEpoch(10, node.epoch),
    )
    table.cluster.call(2, lambda node: node.receive(table.cluster.now_ms, 1, cut))
    assert any(isinstance(each, TruncationRefused) for each in table.member.events)
    assert node.log_end_offset > 10
    assert any(isinstance(each, VerifyLog) for each in table.member.progress)
    table.answers = {
        1: history(end=10, mark="-", common=10),
        3: OURS,
    }
    table.verified()
    table.run()
    settled = table.settled()
    assert settled is not None
    assert settled.outcome is DivergenceOutcome.WON
    assert not table.is_quarantined


def test_a_leader_without_the_committed_records_quarantines_no_log() -> None:
    """Goal: lacking records is not holding others: two that lack them do not outvote one."""
    table = Table(leads=False)
    cut = FetchResponse(
        table.last_fetch.request_id,
        ErrorCode.NONE,
        1,
        table.cluster[2].epoch,
        diverging=OffsetAndEpoch(10, table.cluster[2].epoch),
    )
    table.cluster.call(2, lambda node: node.receive(table.cluster.now_ms, 1, cut))
    short = history(end=10, mark="-", common=10)
    table.answers = {1: short, 3: short}
    table.verified()
    table.run()
    assert not table.is_quarantined
    assert table.settled() is None


def test_who_is_beyond_the_common_part() -> None:
    """Goal: the rules of ``classification`` where one side's batch spans the other's boundary."""

    def held(near: DigestAt, end: DigestAt) -> Held:
        return Held(near, end)

    ours = held(OURS(15), OURS(40))
    theirs = held(THEIRS(15), THEIRS(40))
    difference = Difference(ours, theirs, common_end=10, end_offset=40)
    assert difference.holds(ours, ours)
    assert not difference.holds(ours, theirs)
    assert difference.holds(theirs, theirs)
    assert not difference.holds(theirs, ours)
    lagging = held(DigestAt(10, b"common 10"), DigestAt(10, b"common 10"))
    assert difference.is_undecided(lagging)
    trimmed = held(NOTHING, OURS(40))
    assert difference.holds(trimmed, ours)
    assert not difference.is_undecided(trimmed)
    assert not difference.is_beyond(held(NOTHING, NOTHING))
    part_way = held(DigestAt(10, b"common 10"), DigestAt(30, b"ours 30"))
    assert difference.is_undecided(part_way), "its batch may be ours or one of its own"
    counted = difference.count([ours, theirs, lagging, trimmed, part_way])
    assert (counted.own, counted.theirs, counted.others) == (2, 1, 0)


def test_where_the_common_part_is_unknown_the_boundaries_decide() -> None:
    ours, theirs = Held(OURS(20), OURS(40)), Held(THEIRS(20), THEIRS(40))
    difference = Difference(ours, theirs, common_end=-1, end_offset=40)
    assert difference.holds(ours, ours)
    short = Held(DigestAt(15, b"x"), DigestAt(15, b"x"))
    assert difference.is_undecided(short)


def test_another_disk_with_a_voters_id_does_not_count() -> None:
    """Its log is not the voter's: neither side may get a majority by it."""
    table = begun(n3=OURS)
    table.disks[3] = ReplicaKey(3, b"another disk    ")
    table.run()
    assert table.settled() is None
    assert not table.is_quarantined
    table.disks.clear()
    table.cluster.advance(5_000)
    table.run()
    assert table.settled() is not None


def test_an_answer_without_a_key_is_none() -> None:
    table = begun(n3=OURS)
    _, peer, request = table.cluster.sent[-1]
    assert isinstance(request, ChainDigestRequest)
    answer = ChainDigestResponse(
        request.request_id, ErrorCode.NONE, 1, table.cluster[1].epoch, request.offsets,
        tuple(map(THEIRS, request.offsets)), tuple(map(OURS, request.offsets)),
    )  # fmt: skip
    table.cluster.call(1, lambda node: node.receive(table.cluster.now_ms, peer, answer))
    resolution = table.cluster[1]._core.chain.resolution
    assert resolution is not None
    assert not resolution.is_high_known
    assert [each.failures for each in resolution.requests.values()] == [1]
