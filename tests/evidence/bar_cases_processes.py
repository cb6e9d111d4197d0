"""Cases for the bars of lanes that run real processes, or measure them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from bench import calm
from bench.calm import WRITES_PER_SECOND_MIN, Calm, LeadershipTerm, elections_between
from bench.failover_bounds import LONGEST_MAX_MS, P50_MAX_MS, exceeded
from bench.quorum_under_load import GROUPS_IN_FLIGHT_MAX, NotDurableError, check_durable
from history.check import Report as Checked
from history.violation import Violation as Finding
from tests.chaos.run import LONG_FAULTS_MIN, LONG_OPERATIONS_MIN, Result
from tests.chaos.tally import MISS_SECONDS_MAX, PROOFS_MIN
from tests.chaos.tally import Tally as Faults
from tests.evidence.bars import Bars, Passes, raises
from tests.integration import campaign_bars
from tests.integration.attack_campaign import (
    LATENCY_RATIO_MAX,
    LOG_BYTES_PER_MINUTE_MAX,
    LOG_BYTES_SPARE,
    MEMORY_RATIO_MAX,
    Attack,
    Found,
    Honest,
)
from tests.integration.campaign_bars import Cost, Restarts, kill_problems, restart_problems
from tests.integration.kill_campaign import Tally as Kills


def _broken(
    *problems: str,
    answered: int = LONG_OPERATIONS_MIN,
    faults: int = LONG_FAULTS_MIN,
    **changed: Any,
) -> Passes:
    """A run of chaos; ``changed`` are fields of what the checker reports."""

    def passes() -> bool:
        tally = Faults(Counter({"SIGKILL": faults}), Counter({"SIGKILL": faults}))
        checked = Checked("us", answered=answered, **changed)
        result = Result(1, 60.0, tally, checked, list(problems))
        short = result.shortfalls(faults_min=LONG_FAULTS_MIN, operations_min=LONG_OPERATIONS_MIN)
        return result.exit_code(short) == 0

    return passes


def _without_effect(
    kind: int, effects: int, isolated: int = 1, deposed: int = 1, **others: Any
) -> Passes:
    """A tally of faults of one kind; the nemesis reports faults without effect as problems."""
    tally = Faults(
        Counter(cut=kind),
        Counter(cut=effects),
        isolated_leaders=isolated,
        deposed_leaders=deposed,
        **others,
    )
    return lambda: not tally.without_effect()


CHAOS = Bars(
    ("chaos",),
    (
        Result.exit_code,
        Result.is_good.fget,
        Result.shortfalls,
        Checked.check_result.fget,
        Faults.without_effect,
    ),
    {
        "at the bars": _broken(),
        "one of three had an effect": _without_effect(PROOFS_MIN, 1),
        "two faults without effect": _without_effect(PROOFS_MIN - 1, 0),
        "an isolated leader that stayed beside another fault": _without_effect(
            1, 1, 2, 1, disturbed_isolations=1
        ),
        "a short fault without effect": _without_effect(
            2, 1, longest_miss_seconds=MISS_SECONDS_MAX
        ),
    },
    {
        "a rule of histories is violated": _broken(violations=[Finding("lost-write", "one", ())]),
        "a history is undecided": _broken(undecided=["key"]),
        "files differ, calls hang": _broken("node 1 ended with 9"),
        "too few faults": _broken(faults=LONG_FAULTS_MIN - 1),
        "too few operations": _broken(answered=LONG_OPERATIONS_MIN - 1),
        "a kind of fault without effect": _without_effect(PROOFS_MIN, 0),
        "an isolated leader is not replaced": _without_effect(1, 1, 2, 1),
        "a long fault without effect": _without_effect(
            2, 1, longest_miss_seconds=MISS_SECONDS_MAX + 0.1
        ),
    },
)


def _fail_over(
    *times_ms: float, p50: float | None = P50_MAX_MS, longest: float | None = LONGEST_MAX_MS
) -> Passes:
    return lambda: not exceeded(times_ms, p50_max_ms=p50, longest_max_ms=longest)


FAIL_OVER = Bars(
    ("failover",),
    (exceeded,),
    {
        "at the bounds": _fail_over(P50_MAX_MS, P50_MAX_MS, LONGEST_MAX_MS),
        "no bound": _fail_over(1e6, p50=None, longest=None),
        "no kill and no bound": _fail_over(p50=None, longest=None),
    },
    {
        "the median": _fail_over(P50_MAX_MS + 1),
        "the longest": _fail_over(1.0, 1.0, LONGEST_MAX_MS + 1),
        "no leader was killed": _fail_over(),
    },
)


def _calm(elections: int, writes: int) -> Passes:
    return lambda: not calm.problems(Calm(1.0, writes, elections=elections))


def _quiet(after: LeadershipTerm) -> Passes:
    """Return whether nodes with these metrics count as undisturbed; before, all were zero."""
    before = {1: LeadershipTerm(4, 2, 1), 2: LeadershipTerm(4, 0, 1)}
    return lambda: not elections_between(before, {1: before[1], 2: after})


CALM = Bars(
    ("calm",),
    (calm.problems, elections_between),
    {
        "full load": _calm(0, 60 * WRITES_PER_SECOND_MIN + 1),
        "the same": _quiet(LeadershipTerm(4, 0, 1)),
    },
    {
        "an election": _calm(1, 1_000_000),
        "no load": _calm(0, 60 * WRITES_PER_SECOND_MIN),
        "a node campaigned": _quiet(LeadershipTerm(4, 1, 1)),
        "a node heard of a new epoch": _quiet(LeadershipTerm(5, 0, 1)),
        "a node changed its leader": _quiet(LeadershipTerm(4, 0, 2)),
    },
)


def _killed(acknowledged: int = 51, *violations: str, **changed: int) -> Passes:
    tally = Kills(rounds=50, rounds_losing_unsynced=10, checkpoints=1, trims=1)
    return lambda: not kill_problems(replace(tally, **changed), acknowledged, violations)


KILL_NINE = Bars(
    ("kill-nine",),
    (kill_problems,),
    {"at the bars": _killed()},
    {
        "a violation": _killed(51, "1 acknowledged but lost"),
        "too few writes": _killed(50),
        "too few rounds": _killed(rounds=49),
        "too few disks lost anything": _killed(rounds_losing_unsynced=9),
        "no checkpoint": _killed(checkpoints=0),
        "no trim": _killed(trims=0),
    },
)


def _restarted(*violations: str, **changed: float) -> Passes:
    came_to = Restarts(restarts=6, transferred=1, acknowledged=121, longest_wait_s=1.0)
    return lambda: not restart_problems(replace(came_to, **changed), violations)


ROLLING_RESTART = Bars(
    ("rolling-restart",),
    (restart_problems,),
    {"at the bars": _restarted()},
    {
        "a violation": _restarted("node 1 ended with 9"),
        "no leader transferred leadership": _restarted(transferred=0),
        "no load": _restarted(acknowledged=120),
        "a write waited": _restarted(longest_wait_s=1.001),
    },
)


_WRITES = [0.010] * 99
_FOUND = Found(
    counts={"ended": 30},
    seen={},
    epochs=(1.0, 1.0),
    calm=Honest([*_WRITES, 0.010]),
    attacked=Honest([*_WRITES, 0.010]),
    memory_ratio=MEMORY_RATIO_MAX,
    probes=1,
    unanswered=[],
    log_bytes=LOG_BYTES_SPARE + LOG_BYTES_PER_MINUTE_MAX,
    newcomer_writes=True,
)


def _attacked(*, took_place: bool = True, evaluates_time: bool = True, **changed: Any) -> Passes:
    attack = Attack("made up", lambda _counts, _seen: took_place, ended_min=30)
    found = replace(_FOUND, **changed)
    return lambda: not found.problems(attack, 60.0, evaluates_time=evaluates_time)


_FIVE_TIMES = Honest([LATENCY_RATIO_MAX * 0.010] * 100)
_SLOWER = Honest([LATENCY_RATIO_MAX * 0.010 + 0.001] * 100)
ATTACKS = Bars(
    ("attacks",),
    (Found.problems,),
    {
        "at the bars": _attacked(attacked=_FIVE_TIMES),
        "a short form does not judge latencies": _attacked(attacked=_SLOWER, evaluates_time=False),
    },
    {
        "the attack did not take place": _attacked(took_place=False),
        "stalled calls kept their places": _attacked(counts={"ended": 29}),
        "an election": _attacked(epochs=(1.0, 2.0)),
        "a write failed": _attacked(attacked=Honest([0.010] * 100, ["refused"])),
        "a newcomer found no place": _attacked(newcomer_writes=False),
        "memory grew": _attacked(memory_ratio=MEMORY_RATIO_MAX + 0.01),
        "a probe without an answer": _attacked(unanswered=["/livez"]),
        "logs grew": _attacked(log_bytes=LOG_BYTES_SPARE + LOG_BYTES_PER_MINUTE_MAX + 1),
        "writes were slow": _attacked(attacked=_SLOWER),
    },
)


def _relayed(two: Cost, twenty: Cost) -> Passes:
    return lambda: not campaign_bars.relay_problems(two, twenty, value_bytes=200)


RELAY_PROCESSES = Bars(
    ("relay-processes",),
    (campaign_bars.relay_problems,),
    {"at the bars": _relayed(Cost(1, 401, 1), Cost(1.2, 481.2, 1.6))},
    {
        "Fetches were not counted": _relayed(Cost(0.9, 401, 1), Cost(0.9, 401, 1)),
        "bytes were not counted": _relayed(Cost(1, 400, 1), Cost(1, 400, 1)),
        "Fetches grew": _relayed(Cost(1, 401, 1), Cost(1.3, 401, 1)),
        "bytes grew": _relayed(Cost(1, 401, 1), Cost(1, 482, 1)),
        "processor time grew": _relayed(Cost(1, 401, 1), Cost(1, 401, 1.7)),
    },
)


def _synced(*syncs: int, groups: int = 100) -> Passes:
    return lambda: not raises(NotDurableError, lambda: check_durable(syncs, groups))


BENCH = Bars(
    ("bench",),
    (check_durable,),
    {
        "a sync per group on a majority": _synced(100, 100, 0),
        "the slower of a majority syncs as rarely as it may": _synced(
            2 * GROUPS_IN_FLIGHT_MAX - 1, 1, 0, groups=GROUPS_IN_FLIGHT_MAX
        ),
        "one group": _synced(1, 1, 0, groups=1),
    },
    {
        "no commit": _synced(5, 5, 5, groups=0),
        "too few syncs": _synced(100, 99, 0),
        "one disk alone": _synced(200, 0, 0),
    },
)
