"""Stub clusters that each break one property of relays or of fetching replicas."""

from __future__ import annotations

from types import SimpleNamespace

from quorum.core.contract.output import SaveElectionState
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.errors import ErrorCode
from quorum.types import ElectionState, OffsetAndEpoch
from simulation.invariants.pauses import REPEATS_MAX
from tests.support.stub_cluster import Stage, key_of


def _core(stage: Stage, node_id: int, *, is_relay: bool) -> None:
    """Give a node a time and settings; the stub cluster has none."""
    stage.replicas[node_id].node._core = SimpleNamespace(
        relay=object() if is_relay else None,
        is_voter=not is_relay,
        now_ms=0,
        config=SimpleNamespace(
            observer_session_ms=1_000, relay_hops_max=4, start_offset_lag_max_ms=100
        ),
        role=None,
        snapshots=SimpleNamespace(ids=()),
        **dict.fromkeys(
            ("election", "log", "voters"), SimpleNamespace(start=0, end_offset=0, latest_offset=0)
        ),
        high_watermark=0,
    )


def _fetch(stage: Stage, node_id: int, to: int, request_id: int) -> None:
    request = FetchRequest(request_id, "c", key_of(node_id), 0, 0, 0)
    stage.run_observer.sent(node_id, to, request)


def _answer(stage: Stage, node_id: int, to: int, request_id: int, *route: int, **more: int) -> None:
    path = tuple(key_of(each) for each in route)
    response = FetchResponse(request_id, ErrorCode.NONE, 9, 0, path=path, **more)
    stage.run_observer.sent(node_id, to, response)


def relay_shows_the_uncommitted(stage: Stage) -> None:
    _answer(stage, 3, 2, 1)
    _answer(stage, 2, 1, 1, 2, high_watermark=1)


def relay_leaves_out_a_hop(stage: Stage) -> None:
    _core(stage, 2, is_relay=True)
    _answer(stage, 3, 2, 1, 3)


def relay_reports_nobody(stage: Stage) -> None:
    """The second report was written after the observer had been answered."""
    _core(stage, 2, is_relay=True)
    _fetch(stage, 1, 2, 1)
    _answer(stage, 2, 1, 1)
    _fetch(stage, 2, 3, 2)
    _fetch(stage, 2, 3, 3)


def trimmed_before_its_time(stage: Stage) -> None:
    stage.write(1, SaveElectionState(ElectionState(1, 1, key_of(1))))
    for node_id in (1, 2, 3):
        stage.append(node_id, 0, 1)
    _core(stage, 1, is_relay=False)
    stage.step(1, is_leader=True, epoch=1, high_watermark=1)
    _fetch(stage, 2, 1, 1)
    _answer(stage, 1, 2, 1)
    core = stage.replicas[1].node._core
    core.log = SimpleNamespace(start=1, end_offset=0)
    stage.step(1, log_start=OffsetAndEpoch(1, 1))


def asks_without_a_pause(stage: Stage) -> None:
    for request_id in range(1, REPEATS_MAX + 2):
        _fetch(stage, 2, 3, request_id)


CASES = (
    (relay_shows_the_uncommitted, "relay-shows-committed"),
    (relay_leaves_out_a_hop, "relay-paths"),
    (relay_reports_nobody, "subtree-reported"),
    (trimmed_before_its_time, "trim-waits"),
    (asks_without_a_pause, "pauses"),
)
