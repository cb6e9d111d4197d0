"""The partition laboratory: stories, random runs, and what finds each rule that is taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from quorate.broker_agent.derivation import CommandDerivation
from quorate.broker_agent.image_feed import ImageChange
from quorate.client.log_consumer import LogConsumer
from quorate.client.queries import EARLIEST_TIMESTAMP
from quorate.services import log_reads
from quorate.services.log_range import LogRange
from quorum.errors import CorruptBatchError, ErrorCode
from quorum.log_position import LogPosition
from simulation.expected_warnings import without_consumer_warnings
from simulation.invariants.violation import Violation
from simulation.laboratory import broker, partition_log
from simulation.laboratory.broker import ModelBroker
from simulation.laboratory.laboratory import Laboratory
from simulation.laboratory.partition_log import PartitionLog
from simulation.laboratory.random_run import RandomRun
from simulation.laboratory.reader import Counts
from simulation.laboratory.replica import Replica
from simulation.laboratory.script import run_story
from simulation.scenario.grammar import ScenarioError
from statemachine.prepare import brokers, heartbeats
from statemachine.producers import Duplicate, Fresh, apply_command, check_sequence

STORIES = sorted((Path(__file__).parent / "stories").glob("*.story"))
SEEDS = 60
LONG_SEEDS = 600
TRIES = 800
"""Seeds within which a rule that is taken out is noticed."""
Break = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with without_consumer_warnings():
        yield


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    rewrite = bool(request.config.getoption("--rewrite"))
    differences = run_story(path, rewrite=rewrite)
    assert rewrite or not differences, "\n\n".join(differences)


def run(seeds: range) -> Counts:
    total = Counts()
    for seed in seeds:
        try:
            total.add(RandomRun(seed).run())
        except Violation as violation:
            violation.add_note(f"seed {seed}")
            raise
    return total


def test_random_runs() -> None:
    """Everything that a check is about has happened; an inexact truncation needs more runs."""
    counts = asdict(run(range(SEEDS)))
    del counts["inexact"]
    assert all(counts.values()), counts


@pytest.mark.long
def test_many_random_runs() -> None:
    assert run(range(SEEDS, LONG_SEEDS)).inexact


@pytest.mark.nightly
def test_ten_thousand_random_runs() -> None:
    assert run(range(LONG_SEEDS, 12_000)).inexact


# ------------------------------------------------------------------ rules taken out


def no_epochs(patch: pytest.MonkeyPatch) -> None:
    """A consumer that names no epochs, as before KIP-320."""

    async def fetch(consumer: LogConsumer, position: object, max_wait_ms: int) -> object:
        consumer._leader_epoch = -1
        bare = replace(position, epoch=-1)  # type: ignore[type-var]
        return await original(consumer, bare, max_wait_ms)

    original = LogConsumer._fetch
    patch.setattr(LogConsumer, "_fetch", fetch)


def start_of_log_has_no_epoch(patch: pytest.MonkeyPatch) -> None:
    """A leader that does not know the epoch of the record before its log start."""
    patch.setattr(
        LogRange, "_history_end", lambda self, epoch: self._node.end_offset_for_epoch(epoch)
    )


def zombies_write(patch: pytest.MonkeyPatch) -> None:
    """A partition that does not compare producer epochs."""

    def check(view: object, claim: object, **options: object) -> Fresh | Duplicate:
        state = view.producers.states.get(claim.producer_id)  # type: ignore[attr-defined]
        if state is not None and claim.producer_epoch < state.epoch:  # type: ignore[attr-defined]
            return Fresh()
        return check_sequence(view, claim, **options)  # type: ignore[arg-type]

    def apply(producers: object, header: object, headers: object) -> None:
        state = producers.states.get(header.producer_id)  # type: ignore[attr-defined]
        if state is None or header.producer_epoch >= state.epoch:  # type: ignore[attr-defined]
            apply_command(producers, header, headers)  # type: ignore[arg-type]

    patch.setattr(partition_log, "check_sequence", check)
    patch.setattr(partition_log, "apply_command", apply)


def repeats_are_appended(patch: pytest.MonkeyPatch) -> None:
    """A partition that does not recognise a repeated sequence."""
    patch.setattr(partition_log, "check_sequence", lambda *_, **__: Fresh())
    patch.setattr(partition_log, "apply_command", lambda *_: None)


def truncate_to_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A follower that cuts to its high watermark instead of comparing epochs, as before KIP-101."""

    def take_role(replica: Replica, state: object) -> None:
        is_newer = state.leader_epoch > replica.leader_epoch  # type: ignore[attr-defined]
        original(replica, state)  # type: ignore[arg-type]
        if is_newer and not replica.is_leader:
            start = replica.log_start.offset
            replica.log.truncate_to(max(start, min(replica.high_watermark, replica.log_end.offset)))

    original = Replica.take_role
    patch.setattr(Replica, "take_role", take_role)


def one_truncation_is_enough(patch: pytest.MonkeyPatch) -> None:
    """A follower that does not compare epochs at all after it has fetched before."""
    patch.setattr(
        PartitionLog,
        "end_offset_for_epoch",
        lambda log, epoch: type(log.end)(log.end.offset, epoch),
    )


IN_RANDOM_RUNS = {
    no_epochs: "hidden|skipped|does not get",
    start_of_log_has_no_epoch: "false alarm|does not get",
    zombies_write: "zombie",
    repeats_are_appended: "twice",
    truncate_to_high_watermark: "committed record is gone",
    one_truncation_is_enough: (
        "differ below an equal epoch|does not get|hidden|elsewhere|false alarm"
    ),
}


@pytest.mark.parametrize("taken_out", IN_RANDOM_RUNS, ids=lambda rule: rule.__name__)
def test_random_runs_find_a_rule_that_is_taken_out(
    taken_out: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_out(monkeypatch)
    with pytest.raises(Violation, match=IN_RANDOM_RUNS[taken_out]):
        run(range(TRIES))


def commands_of_any_registration(patch: pytest.MonkeyPatch) -> None:
    """A broker that executes commands of its former registration."""

    def deliver(self: ModelBroker, command: object) -> ErrorCode:
        tag = command.tag._replace(broker_epoch=self.epoch)  # type: ignore[attr-defined]
        return original(self, replace(command, tag=tag))  # type: ignore[type-var]

    original = ModelBroker.deliver
    patch.setattr(ModelBroker, "deliver", deliver)


def members_of_any_registration(patch: pytest.MonkeyPatch) -> None:
    """A leader that does not say under which registration a member has fetched."""
    member = broker.IsrMember
    patch.setattr(broker, "IsrMember", lambda broker_id, _: member(broker_id))


def a_second_process_is_let_in(patch: pytest.MonkeyPatch) -> None:
    """A controller that registers a new process while the session of the former one is valid."""
    patch.setattr(brokers, "_check_session_over", lambda *_: None)


def a_bounce_is_nothing(patch: pytest.MonkeyPatch) -> None:
    """Commands derived as if a broker had never been away, because its id is the same."""

    def follow(self: CommandDerivation, change: ImageChange) -> object:
        before, broker = change.before, change.after.cluster.broker(self._broker_id)
        known = before.cluster.broker(self._broker_id)
        if broker is not None and known is not None:
            seen = before.cluster.brokers.set(known.id, replace(known, epoch=broker.epoch))
            cluster = replace(before.cluster, brokers=seen)
            change = change._replace(before=replace(before, cluster=cluster))
        return original(self, change)

    original = CommandDerivation.follow
    patch.setattr(CommandDerivation, "follow", follow)


def heartbeats_of_any_registration(patch: pytest.MonkeyPatch) -> None:
    """A controller that takes a heartbeat, or a shutdown, of a broker's former registration."""

    def check(view: object, broker_id: int, epoch: int) -> object:
        del epoch
        return view.cluster.broker(broker_id)  # type: ignore[attr-defined]

    patch.setattr(heartbeats, "check_generation", check)


def strays_are_kept(patch: pytest.MonkeyPatch) -> None:
    """A broker that does not compare its disk with the image after a start."""
    patch.setattr(broker, "stray_replicas", lambda *_: None)


def a_shutdown_stops_nothing(patch: pytest.MonkeyPatch) -> None:
    """Commands that do not tell a broker in controlled shutdown to stop."""
    patch.setattr(CommandDerivation, "_not_led", lambda _: set())


def records_below_the_start_are_skipped(patch: pytest.MonkeyPatch) -> None:
    """A consumer that goes on at the log start, whatever its policy, and says nothing."""

    async def skip(consumer: LogConsumer, _: object) -> list[object]:
        found = await consumer._calls.list_offsets(EARLIEST_TIMESTAMP)
        consumer._move_to(LogPosition(found.offset))
        return []

    patch.setattr(LogConsumer, "_reset_position", skip)


def deposed_leaders_serve(patch: pytest.MonkeyPatch) -> None:
    """A leader that does not compare its epoch with that of a request."""
    patch.setattr(log_reads, "check_epoch", lambda *_: None)


def producers_go_with_their_records(patch: pytest.MonkeyPatch) -> None:
    """Brokers that forget a producer with its last record, as before KIP-360."""

    def start(self: Laboratory, brokers: object, **_: object) -> None:
        original(self, brokers, keeps_producers=False)  # type: ignore[arg-type]

    original = Laboratory.__init__
    patch.setattr(Laboratory, "__init__", start)


def unknown_producers_write(patch: pytest.MonkeyPatch) -> None:
    """A partition that takes any sequence of a producer that it does not know."""

    def check(view: object, claim: object, **options: object) -> Fresh | Duplicate:
        if view.producers.states.get(claim.producer_id) is None:  # type: ignore[attr-defined]
            return Fresh()
        return check_sequence(view, claim, **options)  # type: ignore[arg-type]

    patch.setattr(partition_log, "check_sequence", check)


IN_STORIES = {
    no_epochs: ("hidden_truncation", "moves_by_itself", "stored_position"),
    deposed_leaders_serve: ("zombie_leader",),
    records_below_the_start_are_skipped: ("deleted_records",),
    producers_go_with_their_records: ("producer_state_is_kept",),
    unknown_producers_write: ("producer_state_is_lost",),
    truncate_to_high_watermark: ("divergence_2_restart",),
    start_of_log_has_no_epoch: ("everything_deleted",),
    zombies_write: ("zombie_producer",),
    repeats_are_appended: ("lost_answer",),
    one_truncation_is_enough: (
        "divergence_1_equal",
        "divergence_1_longer",
        "divergence_1_shorter",
        "divergence_3_unclean",
    ),
    commands_of_any_registration: (
        "commands_of_a_former_registration",
        "first_command_of_a_former_registration",
        "stop_of_a_former_registration",
    ),
    members_of_any_registration: ("isr_of_a_former_registration",),
    a_second_process_is_let_in: ("bounced_broker",),
    a_bounce_is_nothing: ("bounced_broker", "bounce_without_a_wait"),
    heartbeats_of_any_registration: ("controlled_shutdown",),
    strays_are_kept: ("deleted_while_down",),
    a_shutdown_stops_nothing: ("stop_at_a_shutdown",),
}
"""By rule that is taken out: the stories that show it."""


@pytest.mark.parametrize(
    ("taken_out", "story"),
    [(rule, each) for rule, stories in IN_STORIES.items() for each in stories],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_a_story_shows_a_rule_that_is_taken_out(
    taken_out: Break, story: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(__file__).parent / "stories" / f"{story}.story"
    assert not run_story(path)
    taken_out(monkeypatch)
    assert _differs(path)


def test_every_story_shows_a_rule() -> None:
    shown = {each for stories in IN_STORIES.values() for each in stories}
    assert shown == {path.stem for path in STORIES}


def _differs(path: Path) -> bool:
    try:
        return bool(run_story(path))
    except (ScenarioError, CorruptBatchError):
        # A later command of the story is impossible then.
        return True


def test_a_reader_of_the_log_has_the_image_of_the_controller() -> None:
    """What commands are derived from is what the controller decided."""
    laboratory = RandomRun(5).laboratory
    controller = laboratory.controller
    assert controller._feed.image.has_content_of(controller.image)
    assert controller._feed.applied_offset == controller.log_end_offset - 1


def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.story"
    path.write_text("# A goal.\n\ncluster brokers=(1,2)\n----\nok\n\njump 3\n----\nok\n")
    with pytest.raises(ScenarioError, match="there is no command jump"):
        run_story(path)
