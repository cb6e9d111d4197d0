"""Normalise request ids and drop state that decides nothing, so that equal situations are equal.

The core draws request ids from a counter, so the same situation would look new every time it is
reached. A node waits for at most one answer of each kind from each peer. Each such slot gets a
fixed number here; a request of an abandoned slot has the number 0, whose answer the core ignores.
Counters and times that only affect metrics, reads and back-offs get one value: the models have no
reads, and a timer expires at any moment regardless of its deadline.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from quorum.config import QuorumConfig
from quorum.core.contract.freshness import NEVER_KNOWN
from quorum.core.contract.output import Output
from quorum.core.messages.read_messages import NO_ROUND
from quorum.core.state.core_state import CoreState
from quorum.core.state.disk_watch import DiskWatch
from quorum.core.state.held_fetches import NEVER_MS, HeldFetches
from quorum.core.state.known_leader import NO_LEADER
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.peers import PeerTable
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.core.state.upstream import Upstream
from quorum.core.state.waiting_reads import WaitingReads

NOW_MS = 1_000
"""Time stands still; a timer that expires is set to this."""
LATE = 0
"""Of a request whose sender no longer waits for the answer."""
FETCH = 1
BALLOT, _BEGIN, _END_EPOCH = 10, 20, 30
PRE_BALLOT = 40
"""Numbers from here on are pre-votes."""
PEERS = 10
"""Ids of nodes in a model are below this."""
RAW_FROM = 1_000
"""Ids drawn by the core are above this; they are renamed before a state is compared."""


def slots_of(core: CoreState) -> Iterator[tuple[PeerRequest, int]]:
    """Yield everything that waits for an answer: the object with its ``request_id``, its number."""
    role = core.role
    flight = core.requests.in_flight
    if flight is not None:
        yield flight, FETCH + (flight.purpose is Purpose.FETCH_SNAPSHOT)
    match role:
        case Prospective() | Candidate():
            base = BALLOT if isinstance(role, Candidate) else PRE_BALLOT
            for peer, ballot in role.ballots.items():
                yield ballot, base + peer
        case Resigned():
            for peer, end_epoch in role.end_epochs.items():
                yield end_epoch, _END_EPOCH + peer


def rename(core: CoreState, *, has_begin_answers: bool) -> dict[int, int]:
    """Give every slot its fixed number; return the numbers by raw id."""
    names: dict[int, int] = {}
    numbered = [(holder, number) for holder, number in slots_of(core) if holder.request_id]
    for holder, number in numbered:
        names[holder.request_id] = number
        core.requests.close(holder)
    for holder, number in numbered:
        core.requests.open(holder, number)
    role = core.role
    if isinstance(role, Leader):
        for peer, progress in role.remote.items():
            if not has_begin_answers:
                core.requests.close(progress.begin)
            if progress.begin.request_id:
                names[progress.begin.request_id] = _BEGIN + peer
                core.requests.open(progress.begin, _BEGIN + peer)
    core.requests.last_id = RAW_FROM
    return names


def live_numbers(core: CoreState) -> frozenset[int]:
    """Return the numbers of the slots that wait for an answer."""
    found = {number for holder, number in slots_of(core) if holder.request_id}
    if isinstance(core.role, Leader):
        remote = core.role.remote.values()
        found |= {each.begin.request_id for each in remote if each.begin.request_id}
    return frozenset(found)


def forget_idle(core: CoreState, *, has_pre_votes: bool) -> None:
    """Give one value to state that no decision of a model depends on."""
    core.disk.watermark_store_due_ms = NEVER_MS
    core.freshness = NEVER_KNOWN
    core.log.cuts = 0
    core.registration.basis = core.registration.problem = None
    core.requests.close_all(Purpose.LEADER_SEARCH)
    chain = core.chain
    chain.equal = chain.different = chain.too_early = chain.unknown = 0
    role = core.role
    flight = core.requests.in_flight
    if flight is not None:
        is_to_leader = isinstance(role, Follower) and flight.peer == role.leader_id
        if not is_to_leader:
            core.requests.end_flight()
        flight.behind = None
    if isinstance(role, Unattached):
        role.discover_at_ms = 0
    if isinstance(role, Follower):
        role.has_fetched = role.has_fetched and has_pre_votes
        role.read_round = NO_ROUND
        role.fetch_deadline_ms = NEVER_MS
        role.has_campaigned = role.has_campaigned and has_pre_votes
    if isinstance(role, Prospective):
        # A node that yields may go on at any moment: at the next event its time is over.
        role.yield_until_ms = 0
    if isinstance(role, Leader):
        _forget_of_leader(core, role)


_IDLE: tuple[tuple[str, ...], ...] = (
    ("config",), ("rng",), ("out",), ("following", "peers"), ("following", "upstream"),
    ("disk", "watch"), ("forwarded",), ("timers_fired",), ("known_leader", "announced"),
    ("known_leader", "basis"),
)  # fmt: skip
"""Parts of a core that are equal in all states: time stands still, and there are no reads."""


def set_aside(core: CoreState) -> None:
    """Take out what is equal in all states; ``bring_back`` creates it again."""
    for *groups, name in _IDLE:
        owner: Any = core
        for group in groups:
            owner = getattr(owner, group)
        setattr(owner, name, None)


def bring_back(core: CoreState, config: QuorumConfig, rng: random.Random) -> None:
    """Undo ``set_aside``."""
    core.config, core.rng = config, rng
    core.out = Output()
    core.following.peers = PeerTable(config)
    core.following.upstream = Upstream(())
    core.disk.watch = DiskWatch(config.disk_stall_ms)
    core.forwarded = WaitingReads()
    core.timers_fired = Counter()
    core.known_leader.announced = NO_LEADER


def _forget_of_leader(core: CoreState, leader: Leader) -> None:
    leader.reads = ReadRounds(core.epoch, NOW_MS)
    leader.granting = ()
    leader.contacted.clear()
    leader.uncommitted.clear()
    leader.ahead.clear()
    leader.uncommitted_bytes = 0
    leader.upkeep_due_ms = NEVER_MS
    # The leader's majority has been silent for a fetch timeout, and check quorum is not due yet. A
    # leader with a recent majority refuses a later epoch, which is the same as a lost request.
    config = core.config
    leader.check_quorum_deadline_ms = NOW_MS + config.check_quorum_ms - config.fetch_timeout_ms
    for progress in (*leader.remote.values(), *leader.observers.values()):
        progress.read_round = 0
        progress.last_caught_up_ms = progress.leader_end_at_fetch = progress.compared_end = -1
        progress.is_incomparable = False
        progress.begin.due_ms = NEVER_MS
        progress.begin.failures = 0
        progress.last_fetch_ms = NOW_MS
    held = leader.held.take_all()
    leader.held = HeldFetches()
    for fetch in sorted(held, key=lambda each: each.sender):
        # No node waits for the answer to a Fetch that its sender has given up.
        if fetch.request.request_id != LATE:
            fetch.deadline_ms = NEVER_MS
            leader.held.hold(fetch)


def shift_tickets(core: CoreState) -> int:
    """Count tickets from the last durable one; return by how much they fell."""
    disk = core.disk
    base = disk.durable_ticket
    if base == 0:
        return 0
    disk.durable_ticket = 0
    disk.last_ticket -= base
    disk.election_ticket = max(0, disk.election_ticket - base)
    core.log.ticket = max(0, core.log.ticket - base)
    core.log._pending = type(core.log._pending)(
        (max(0, ticket - base), end) for ticket, end in core.log._pending
    )
    if isinstance(core.role, Leader):
        core.role.durable_with = max(0, core.role.durable_with - base)
    flight, download = core.requests.in_flight, core.following.download
    if flight is not None:
        flight.ticket = max(0, flight.ticket - base)
    if download is not None:
        unwritten = download.unwritten
        download.unwritten = type(unwritten)(max(0, each - base) for each in unwritten)
    return base


def forget_search(core: CoreState) -> None:
    """Drop the pending question for the leader: it delays nothing."""
    flight, role = core.requests.in_flight, core.role
    if flight is not None and not (isinstance(role, Follower) and flight.peer == role.leader_id):
        core.requests.end_flight()
