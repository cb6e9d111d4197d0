"""Every timer of the core: what it is for, how long it runs, what happens when it fires.

A timer fires where the code that owns it finds it due and acts; it is counted only there
(``CoreState.fired``). ``deadlines`` returns when the node must be woken for one. Periods for which
no node is woken, such as an observer's session, are checked in the leader's upkeep and counted when
they are over.

See: docs/reference/protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias

from quorum.core.state.peer_requests import Purpose


class TimerKind(NamedTuple):
    """One row of the table."""

    name: str
    length: str
    """The settings that it runs for; [E, 2E) is a random time of that range."""
    action: str
    """What is done when it fires."""


_E = "[E, 2E) of `election_timeout_ms`"
_REQUEST = "`request_timeout_ms`"
_BACKOFF = "`retry_backoff_ms`, doubling up to 16 times"


class Timer(Enum):
    """All timers."""

    REQUEST_TIMEOUT = TimerKind(
        "request timeout", _REQUEST, "no answer: the request has failed, and waits for its back-off"
    )
    RETRY_BACKOFF = TimerKind("retry back-off", _BACKOFF, "a request that failed is sent again")
    ELECTION = TimerKind("election", _E, "a voter without a leader asks for pre-votes")
    FETCH = TimerKind(
        "fetch",
        "[T, 9/8 T) of `fetch_timeout_ms`",
        "a follower whose leader is silent campaigns",
    )
    YIELD = TimerKind(
        "yield",
        "a quarter of `election_timeout_ms`",
        "a voter that let another one campaign first continues its own campaign",
    )
    LOST_LEADER = TimerKind(
        "lost leader",
        "up to `lost_leader_jitter_ms`, or as an EndQuorumEpoch implies",
        "a follower whose leader is gone campaigns",
    )
    PRE_VOTE_ROUND = TimerKind(
        "pre-vote round", _E, "a Prospective voter ends the round of pre-votes"
    )
    VOTE_ROUND = TimerKind("vote round", _E, "a candidate not elected asks for pre-votes again")
    LOST_LEADER_RETRY = TimerKind(
        "lost leader retry",
        "up to `lost_leader_retry_ms`",
        "a rejected round is repeated, because the leader is gone",
    )
    RESIGNATION = TimerKind("resignation", _E, "a resigned leader leaves its epoch")
    SEARCH_END = TimerKind(
        "search end",
        _BACKOFF,
        "a request to another peer is given up, and the leader is asked again",
    )
    DISCOVERY = TimerKind(
        "discovery",
        "a quarter of `election_timeout_ms`",
        "a voter without a leader asks other peers for the leader",
    )
    DOWNLOAD_CONTACT = TimerKind(
        "download contact",
        "a quarter of `fetch_timeout_ms`",
        "a Fetch keeps contact with the leader while a checkpoint is verified",
    )
    CHECK_QUORUM = TimerKind(
        "check quorum", "1.5 times `fetch_timeout_ms`", "a leader without a majority resigns"
    )
    UPKEEP = TimerKind(
        "upkeep",
        "half of `fetch_timeout_ms`",
        "a leader checks silent replicas, the log start and its self registration",
    )
    BEGIN_QUORUM = TimerKind(
        "begin quorum",
        "half of `fetch_timeout_ms`",
        "the leader announces itself to a silent voter",
    )
    HELD_FETCH = TimerKind(
        "held fetch",
        "the Fetch's own, at most `fetch_max_wait_ms`",
        "it is answered without records",
    )
    APPEND_DELAY = TimerKind(
        "append delay",
        "`append_delay_ms`",
        "a replica that no commit waits for gets the records gathered so far",
    )
    WATERMARK_DELAY = TimerKind(
        "watermark delay",
        "`high_watermark_delay_ms`",
        "a held Fetch is answered to report the high watermark",
    )
    SNAPSHOT_HOLD = TimerKind(
        "snapshot hold",
        "`start_offset_lag_max_ms`",
        "the log is trimmed although a live replica needs more of it",
    )
    OBSERVER_SESSION = TimerKind(
        "observer session", "`observer_session_ms`", "a silent observer is forgotten"
    )
    TRANSFER = TimerKind("transfer", "`transfer_timeout_ms`", "the leader takes writes again")
    CHANGE = TimerKind(
        "membership change",
        "`request_timeout_ms`, or less if asked for",
        "a change of the voter set is given up",
    )
    SELF_REGISTRATION = TimerKind(
        "self registration",
        "twice `fetch_timeout_ms`",
        "a voter asks for its entry to be corrected",
    )
    AUTO_JOIN = TimerKind(
        "auto join", "twice `fetch_timeout_ms`", "a replica asks to become a voter"
    )
    READ_PATIENCE = TimerKind(
        "read patience", "twice `fetch_timeout_ms`", "a read that waits for a leader fails"
    )
    WATERMARK_STORE = TimerKind(
        "watermark store", "`high_watermark_store_ms`", "the high watermark is stored on disk"
    )
    DISK_SUSPECTED = TimerKind(
        "hung disk, first check", "7/8 of `disk_stall_ms`", "the disk is checked once more"
    )
    DISK_STALLED = TimerKind(
        "hung disk, second check",
        "1/8 of `disk_stall_ms`",
        "a leader resigns; no vote is granted",
    )
    RELAY_PATIENCE = TimerKind(
        "relay patience",
        "one to two times `relay_patience_ms`",
        "an observer that no relay answers asks the leader",
    )
    RELAY_RETRY = TimerKind("relay retry", "`relay_retry_ms`", "the relays are tried again")
    RELAY_HELD_FETCH = TimerKind(
        "relay's held fetch",
        "the Fetch's own, at most `fetch_max_wait_ms`",
        "it is answered without records",
    )
    RELAY_AGE = TimerKind(
        "relay age", "`relay_age_max_ms`", "a relay whose leader is silent refuses its observers"
    )
    RELAY_UPKEEP = TimerKind("relay upkeep", "one second", "a relay counts its subtree again")


FiredTimer: TypeAlias = Timer | tuple[Timer, Purpose]
"""What is counted: a timer, and for the two timers of requests its purpose as well."""


def all_timers() -> Iterator[FiredTimer]:
    """Everything that can be counted."""
    for timer in Timer:
        match timer:
            case Timer.REQUEST_TIMEOUT:
                yield from ((timer, each) for each in Purpose if each.value.times_out)
            case Timer.RETRY_BACKOFF:
                yield from ((timer, each) for each in Purpose if each.value.is_retried)
            case _:
                yield timer


def name_of(fired: FiredTimer) -> str:
    """The name that it is counted under."""
    if isinstance(fired, Timer):
        return fired.value.name
    timer, purpose = fired
    return f"{timer.value.name} ({purpose.value.name})"
