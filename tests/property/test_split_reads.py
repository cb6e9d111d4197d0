"""A read in parts gives the rows of a whole read, and the longest part is as short as can be."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.directory import plan_source
from audit.plan import CheckpointFile, Entry, ReadPlan, SegmentFile
from audit.schema import TABLES
from audit.splits import Costs, splits
from quorum.types import OffsetAndEpoch
from tests.support.audit_log import AuditLog, table_rows

SHARES = st.floats(0.0, 0.95)


@st.composite
def plans(draw: st.DrawFn) -> ReadPlan:
    """A log of a few records in files, with checkpoints; some have lost their beginning."""
    end = draw(st.integers(2, 11))
    bases = sorted(draw(st.sets(st.integers(0, end - 1), min_size=1, max_size=3)))
    inside = draw(st.sets(st.integers(0, end - 1), max_size=3)) - set(bases)
    files = tuple(
        SegmentFile(
            f"s{base}", base, base, after,
            entries=tuple(Entry(each, 0, b"") for each in sorted(inside) if base < each < after),
        )
        for base, after in pairwise([*bases, end])
    )  # fmt: skip
    reached = list(range(max(bases[0], 1), end + 1))
    ends = sorted(draw(st.sets(st.sampled_from(reached), max_size=4)))
    checkpoints = tuple(CheckpointFile(f"c{each}", OffsetAndEpoch(each, 1)) for each in ends)
    return ReadPlan(
        "log", start_offset=bases[0], end_offset=end, segments=files, checkpoints=checkpoints
    )


def cost(plan: ReadPlan, part: tuple[int, int], costs: Costs) -> float:
    """What a part costs, by counting the records in front of it one by one."""
    start, end = part
    rows = float(sum(offset >= plan.start_offset for offset in range(start, end)))
    baseline = plan.baseline
    if baseline is not None and start < baseline.end_offset:
        return rows
    checkpoint, begin = plan.replay_start(start), start
    if costs.replay and checkpoint is not None:
        begin = checkpoint.end_offset
    elif costs.replay and plan.start_offset == 0:
        begin = 0
    begins = [file.entry(begin).offset for file in plan.segments if file.base_offset <= begin]
    verified = range(max(begins, default=begin), begin)
    return rows + costs.replay * len(range(begin, start)) + costs.verify * len(verified)


@settings(max_examples=300, deadline=None)
@given(plan=plans(), count=st.integers(1, 4), replay=SHARES, verify=SHARES, data=st.data())
def test_no_other_split_has_a_shorter_longest_part(
    plan: ReadPlan, count: int, replay: float, verify: float, data: st.DataObject
) -> None:
    """Invariants: parts follow one another, the baseline is whole, and they are balanced."""
    # To verify a record is part of replaying it.
    costs = Costs(replay, min(verify, replay) if replay else verify)
    start = data.draw(st.integers(plan.first_offset, plan.end_offset - 1))
    end = plan.end_offset
    parts = splits(plan, start, end, count, costs)
    assert [part[0] for part in parts] == [start, *(part[1] for part in parts[:-1])]
    assert parts[-1][1] == end
    assert all(first < behind for first, behind in parts)
    assert len(parts) <= count
    whole_until = 0 if plan.baseline is None else min(plan.baseline.end_offset, end)
    assert start >= whole_until or parts[0][1] >= whole_until
    inner = range(max(start + 1, whole_until), end)
    others = [
        list(pairwise([start, *cuts, end]))
        for number in range(count)
        for cuts in combinations(inner, number)
    ]
    best = min(max(cost(plan, part, costs) for part in other) for other in others)
    assert max(cost(plan, part, costs) for part in parts) <= best + 0.001


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    steps=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    segment_bytes=st.sampled_from((2000, 10_000, 1 << 20)),
    is_trimmed=st.booleans(),
    data=st.data(),
)
def test_parts_that_begin_at_any_of_several_checkpoints_add_up(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    steps: list[int],
    segment_bytes: int,
    is_trimmed: bool,
    data: st.DataObject,
) -> None:
    """Goal: a read of a range equals the reads of its parts, wherever a checkpoint ends."""
    log = AuditLog(tmp_path_factory.mktemp("split"), segment_bytes=segment_bytes)
    log.elect(1)
    world = log.world(seed, 10, reuses_names=True)
    checkpoints = []
    for epoch, number in enumerate(steps, start=2):
        checkpoints.append(log.checkpoint())
        log.elect(epoch)
        log.more(world, number)
    log.commit()
    if is_trimmed:
        log.log.advance_start(checkpoints[0])
    plan = plan_source(log.home)
    assert len(plan.checkpoints) == len(steps)
    count = data.draw(st.integers(2, 9))
    costs = Costs(replay=data.draw(SHARES))
    start = data.draw(st.integers(0, plan.end_offset - 1))
    if plan.baseline is not None and start < plan.baseline.end_offset:
        start = 0
    for table in TABLES:
        whole = table_rows(plan, table, start, plan.end_offset)
        parts = splits(plan, start, plan.end_offset, count, costs)
        assert [row for part in parts for row in table_rows(plan, table, *part)] == whole
