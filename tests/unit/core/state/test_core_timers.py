"""Every timer that can fire has a name of its own, under which it is counted."""

from __future__ import annotations

from collections import Counter

from quorum.core.state.peer_requests import Purpose
from quorum.core.state.timers import Timer, all_timers, name_of


def test_every_timer_is_counted_once_and_those_of_requests_by_purpose() -> None:
    names = Counter(map(name_of, all_timers()))
    assert set(names.values()) == {1}
    by_purpose = {Timer.REQUEST_TIMEOUT, Timer.RETRY_BACKOFF}
    assert {each.value.name for each in Timer if each not in by_purpose} <= names.keys()
    assert "request timeout (Vote)" in names
    assert "request timeout (BeginQuorumEpoch)" not in names, "silence is not its failure"
    assert "retry back-off (BeginQuorumEpoch)" in names
    assert "retry back-off (leader search)" not in names, "it is not asked again"
    assert len(names) == len(Timer) - 2 + sum(
        each.value.times_out + each.value.is_retried for each in Purpose
    )
