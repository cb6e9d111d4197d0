"""What the driver does at every entry: promises wait for the disk, a pause is noticed."""

from __future__ import annotations

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.output import Output, Promise
from quorum.core.messages.vote_messages import VoteResponse
from quorum.errors import ErrorCode
from quorum.runtime.ports import WriteDone
from tests.support.lone_replica import LoneReplica


def test_a_promise_leaves_with_its_ticket_and_in_order() -> None:
    bench = LoneReplica(voters=3).boot()
    bench.persist()
    bench.sent.clear()
    driver = bench.replica.driver
    last = driver._durable_ticket
    answer = VoteResponse(1, ErrorCode.NONE, 2, 1, granted=False)
    for ticket, to in ((2, 1), (2, 2), (3, 3)):
        driver._promises.append((last + ticket, to, answer))
    left = []
    for ticket in (1, 2, 3):
        driver._durable_ticket = last + ticket
        output = Output()
        output.after_persist.append(Promise(last + 9, 9, answer))
        driver._carry_out(output)
        left.append([to for to, _ in bench.sent])
    assert left == [[], [1, 2], [1, 2, 3]]


@pytest.mark.parametrize(
    ("limit_ms", "late_ms", "pauses"), [(250, 250, []), (250, 251, [251]), (0, 9_000, [])]
)
def test_a_pause_is_what_exceeds_the_limit_and_is_reported_once(
    limit_ms: int, late_ms: int, pauses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = LoneReplica(voters=3, quorum=QuorumConfig(process_pause_ms=limit_ms)).boot()
    bench.persist()
    due_ms = bench.replica.driver._due_ms
    assert due_ms is not None
    node, calls = bench.replica.node, []
    take = node.process_paused

    def note(now_ms: int, late_ms: int) -> Output:
        calls.append(late_ms)
        return take(now_ms, late_ms)

    monkeypatch.setattr(node, "process_paused", note)
    bench.clock.time_ms = due_ms + late_ms
    done = WriteDone(bench.replica.driver._durable_ticket, (), flushed=False)
    bench.replica.write_done(done)
    bench.replica.write_done(done)
    assert calls == pauses
