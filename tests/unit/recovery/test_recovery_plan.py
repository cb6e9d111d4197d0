"""The rules of a recovery: a table of cases, and their effect on true histories."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from quorate.adoption.contents import batches_of
from quorate.recovery.errors import RecoveryRefusedError
from quorate.recovery.plan import Dropped, RecoveryPlan, common_end, make_plan
from quorate.recovery.survivor import Survivor, read_survivor
from quorum.log.readonly import open_readonly
from quorum.types import EpochStart, OffsetAndEpoch, ReplicaKey, SnapshotId
from simulation.cluster import Cluster
from simulation.damaged_files import DATA_DIR
from simulation.invariants.mirror import LogMirror
from simulation.memory_disk import CrashMode
from simulation.options import Options
from simulation.trace import Trace
from snapshot.naming import file_name
from tests.support.crash_sites import WatchedFileSystem
from tests.support.storage_script import (
    HOME,
    LOG,
    append,
    commit,
    format_node,
    take_checkpoint,
    vote,
)

KEYS = tuple(ReplicaKey(each, bytes([each]) * 16) for each in range(6))
VOTERS = KEYS[1:4]


def survivor(number: int, epochs: str, end: int, committed: int = 0, **others: object) -> Survivor:
    """``epochs`` as "1@0 3@10": epoch and first offset."""
    history = tuple(
        EpochStart(int(epoch), int(start))
        for epoch, _, start in (each.partition("@") for each in epochs.split())
    )
    made = Survivor(
        Path(f"disk-{number}"), "c", KEYS[number],
        history[0].start_offset if history else 0,
        OffsetAndEpoch(end, history[-1].epoch if history else 0), committed, history, VOTERS,
    )  # fmt: skip
    return replace(made, **others)  # type: ignore[arg-type]


def test_the_newest_log_goes_on_and_nothing_known_is_lost() -> None:
    older = survivor(1, "1@0 2@10", 30, 12)
    newer = survivor(2, "1@0 3@10", 20, 11)
    plan = make_plan([older, newer])
    assert plan.chosen is newer
    assert (plan.kept_end, plan.forced_end) == (12, 20)
    assert plan.missing == (KEYS[3],)
    assert plan.has_majority
    assert [(each.survivor, each.start_offset, each.end_offset) for each in plan.dropped] == [
        (older, 10, 30)
    ]


def test_one_voter_of_three_and_an_observer_are_no_majority() -> None:
    plan = make_plan([survivor(1, "1@0", 30, 12), survivor(4, "1@0", 33, 12)])
    assert not plan.has_majority
    assert plan.missing == (KEYS[2], KEYS[3])
    assert plan.chosen.key == KEYS[4]
    assert (plan.kept_end, plan.forced_end, plan.dropped) == (12, 33, ())


def test_a_disk_that_lost_acknowledged_records_is_not_chosen() -> None:
    lost = survivor(1, "1@0 3@20", 25, 12, vote_floor=OffsetAndEpoch(40, 3))
    kept = survivor(2, "1@0", 20, 12)
    assert make_plan([lost, kept]).chosen is kept
    with pytest.raises(RecoveryRefusedError, match="lost records"):
        make_plan([lost])


def test_a_disqualified_disk_is_neither_chosen_nor_counted() -> None:
    unfit = survivor(1, "1@0 3@20", 25, 12, disqualified="a copy")
    plan = make_plan([unfit, survivor(2, "1@0", 20, 12)])
    assert plan.chosen.key == KEYS[2]
    assert plan.missing == (KEYS[1], KEYS[3])
    assert not plan.has_majority


@pytest.mark.parametrize(
    ("survivors", "words"),
    [
        ([survivor(1, "1@0", 5), survivor(2, "1@0", 5, cluster_id="d")], "belongs to cluster c"),
        ([survivor(1, "1@0", 5), survivor(1, "1@0", 6)], "copies of one disk"),
        ([survivor(1, "1@0", 5, 9, disqualified="x"), survivor(2, "1@0", 5)], "below 9 is"),
    ],
)
def test_contradictions_are_refused(survivors: list[Survivor], words: str) -> None:
    with pytest.raises(RecoveryRefusedError, match=words):
        make_plan(survivors)


def test_what_the_newest_log_has_trimmed_is_not_dropped() -> None:
    newer = survivor(1, "4@20", 30, 20)
    assert make_plan([newer, survivor(2, "1@0", 15, 9)]).dropped == ()
    (dropped,) = make_plan([newer, survivor(2, "1@0", 25, 9)]).dropped
    assert (dropped.start_offset, dropped.end_offset) == (20, 25)


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        (("1@0", 5), ("1@0", 9), 5),
        (("1@0 2@5", 9), ("1@0 3@4", 9), 4),
        (("1@0 2@5", 9), ("2@7", 8), 8),
        (("", 0), ("1@0", 9), 0),
        (("4@3", 6), ("1@0", 3), 0),
    ],
)
def test_the_common_part_of_two_logs(
    first: tuple[str, int], second: tuple[str, int], common: int
) -> None:
    assert common_end(survivor(1, *first), survivor(2, *second)) == common
    assert common_end(survivor(2, *second), survivor(1, *first)) == common


# ---------------------------------------------------------------------- true histories


@dataclass(frozen=True)
class Disaster:
    """The disks that are left, and all that any node ever reported as committed."""

    survivors: list[Survivor]
    logs: dict[bytes, LogMirror]
    committed: LogMirror

    def problems(self, plan: RecoveryPlan) -> list[str]:
        """Compare a plan with the truth."""
        committed, chosen = self.committed, self.logs[plan.chosen.key.directory_id]
        found = []
        kept = plan.kept_end
        if committed.chain_at(kept) is None or committed.chain_at(kept) != chosen.chain_at(kept):
            found.append(f"not everything below {kept} is committed and kept")
        end = committed.end_offset
        if plan.has_majority and chosen.chain_at(end) != committed.chain:
            found.append(f"nothing is unknown, but {end} was committed")
        for each in plan.dropped:
            log = self.logs[each.survivor.key.directory_id]
            for offset, _ in log.boundaries_between(each.start_offset, each.end_offset):
                if offset > each.start_offset and log.chain_at(offset) == committed.chain_at(
                    offset
                ):
                    found.append(f"dropped up to {offset}, which was committed")
        known = max(each.committed_end for each in plan.survivors)
        if kept < known:
            found.append(f"kept up to {kept}, but a survivor knows {known} as committed")
        reported = {
            (each.survivor.key, each.start_offset, each.end_offset) for each in plan.dropped
        }
        if reported != (dropped := self._dropped(plan)):
            found.append(f"{reported} is reported as dropped, and {dropped} is")
        return found

    def _dropped(self, plan: RecoveryPlan) -> set[tuple[ReplicaKey, int, int]]:
        """Compare the content of the logs: what going on with the chosen one really drops."""
        chosen, found = self.logs[plan.chosen.key.directory_id], set()
        for each in plan.survivors:
            log = self.logs[each.key.directory_id]
            common = [0, *(o for o, c in zip(log.ends, log.chains) if chosen.chain_at(o) == c)]
            start = max(common[-1], chosen.ends[0])
            if start < log.end_offset:
                found.add((each.key, start, log.end_offset))
        return found


def disaster(seed: int) -> Disaster:
    """Run a cluster on a bad network, stop all machines, and keep some of the disks."""
    rng = random.Random(f"disaster {seed}")
    cluster = Cluster(seed, Trace(is_kept=False), Options("network"))
    cluster.start()
    events = rng.randrange(100, 1500)
    while cluster.counts.events < events:
        cluster.scheduler.step()
    observer = cluster.run_observer
    survivors, logs = [], {}
    members = list(cluster.members.values())
    for member in rng.sample(members, rng.randrange(1, len(members) + 1)):
        fs = member.disk.fs.clone()
        fs.crash(rng, CrashMode())
        found = read_survivor(fs, DATA_DIR)
        log = open_readonly(DATA_DIR, fs)
        start = log.start
        mirror = LogMirror(
            start.offset, start.epoch, observer.positions.get((start.offset, start.epoch), -1)
        )
        for data in batches_of(log, start.offset):
            for batch in observer.split(data):
                mirror.append(batch)
        survivors.append(found)
        logs[found.key.directory_id] = mirror
    return Disaster(survivors, logs, observer.committed)


@dataclass
class Seen:
    """What occurred in a number of disasters, so that none of the rules is tested in vain."""

    lost_majority: int = 0
    forced: int = 0
    dropped: int = 0
    lost: int = 0
    """Committed records that no survivor has."""
    observers: int = 0
    """Directories that belong to no voter of the chosen log."""
    led_by_an_observer: int = 0
    """The majority is lost, and an observer's log is the newest."""
    noticed: set[str] = field(default_factory=set)
    """Wrong plans that the comparison with the truth has refused."""


def wrong_plans(plan: RecoveryPlan) -> dict[str, RecoveryPlan]:
    others = [each for each in plan.survivors if each is not plan.chosen]
    return {
        "all of the newest log is kept": replace(plan, kept_end=plan.forced_end),
        "nothing is unknown": replace(plan, has_majority=True),
        "nothing is kept": replace(plan, kept_end=0),
        "nothing is dropped": replace(plan, dropped=()),
        "everything elsewhere is dropped": replace(
            plan, dropped=tuple(Dropped(each, 0, each.end.offset) for each in others)
        ),
    }


def is_voter(plan: RecoveryPlan, each: Survivor) -> bool:
    return any(each.key.matches(voter) for voter in plan.voters)


def check(seeds: range) -> Seen:
    seen = Seen()
    for seed in seeds:
        found = disaster(seed)
        plan = make_plan(found.survivors)
        assert not found.problems(plan), f"seed {seed}: {found.problems(plan)}"
        seen.lost_majority += not plan.has_majority
        seen.forced += plan.forced_end > plan.kept_end
        seen.dropped += bool(plan.dropped)
        chosen = found.logs[plan.chosen.key.directory_id]
        seen.lost += chosen.chain_at(found.committed.end_offset) != found.committed.chain
        strangers = [each for each in plan.survivors if not is_voter(plan, each)]
        seen.observers += len(strangers)
        seen.led_by_an_observer += not plan.has_majority and plan.chosen in strangers
        seen.noticed |= {name for name, each in wrong_plans(plan).items() if found.problems(each)}
    return seen


def test_plans_agree_with_true_histories() -> None:
    seen = check(range(20, 40))
    assert min(seen.lost_majority, seen.forced, seen.dropped, seen.lost, seen.observers) > 0, seen
    assert len(seen.noticed) == 5, seen


@pytest.mark.long
def test_two_hundred_plans_agree_with_true_histories() -> None:
    check(range(40, 240))


@pytest.mark.nightly
def test_a_thousand_plans_agree_with_true_histories() -> None:
    seen = check(range(240, 1240))
    assert seen.led_by_an_observer > 0, seen


@pytest.mark.parametrize("end", [7, 9, 13])
def test_a_checkpoint_under_another_name_keeps_nothing(end: int) -> None:
    """Method: copy one behind the high watermark, to the ends of other batches."""
    fs = WatchedFileSystem()
    format_node(fs)
    for step in (vote(1), append(0, 1, 6), commit(5), take_checkpoint(SnapshotId(5, 1))):
        step.run(fs)
    content = fs.read_bytes(LOG / file_name(SnapshotId(5, 1)))
    assert read_survivor(fs, HOME).committed_end == 5
    fs.write_bytes(LOG / file_name(SnapshotId(end, 1)), content)
    assert read_survivor(fs, HOME).committed_end == 5
