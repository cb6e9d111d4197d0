"""The metadata of an observer in the agent's process: by steps, over checkpoints, and behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from quorate.broker_agent import observed_log
from quorate.broker_agent.commands import LeaderAndIsr, StopReplica, UpdateMetadata
from quorate.broker_agent.errors import AgentError
from quorate.broker_agent.handler import AgentState, Registered, StateChanged
from quorate.broker_agent.image_feed import ImageChange, differing_partitions
from quorate.broker_agent.observed_log import _Waiting
from quorate.controller.publishing import Published
from quorum.batch import encode_batch
from quorum.errors import QuorumUsageError, ReplayError
from statemachine.codec import encode_record
from statemachine.commands import CreateTopic, DeleteTopic, UnregisterBroker
from statemachine.image import MetadataImage
from statemachine.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)
from statemachine.sections.partition_index import PartitionKey
from tests.support.agent_world import BROKER, Recorder, Running, World
from tests.support.broker_world import OWN, Cluster, act
from tests.support.image_builder import topic_id
from tests.support.observer_reader import DEADLINE_SECONDS, Reader, ends, play


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_passed_over_however_the_observer_gets_on(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches one by one, many at once, checkpoints, and an agent that is behind."""
    run_at_random(seed, monkeypatch)


def run_at_random(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(observed_log, "WAITING_STEPS_MAX", rng.choice((1, 3, 1_000)))

    async def scenario(reader: Reader) -> None:
        for _ in range(80):
            act(rng, reader.cluster)
            kind = rng.random()
            if kind < 0.5:
                reader.apply()
            elif kind < 0.6:
                reader.fetch_checkpoint()
            if rng.random() < 0.5:
                await reader.read()
        reader.apply()
        await reader.read()

    play(scenario, is_registered=False)


def test_each_batch_of_a_delivery_is_a_change_of_its_own() -> None:
    """Commands name the position that they were derived at, and the published image is kept."""

    async def scenario(reader: Reader) -> None:
        reader.apply()
        await reader.read()
        at = [reader.observer.end_offset]
        for name in ("a", "b"):
            reader.cluster.submit(CreateTopic(name, 2, 3))
            at.append(reader.cluster.controller.log_end_offset)
        reader.apply()
        steps = await reader.read()
        assert ends(steps) == at[1:]
        hosts = [each for each in reader.commands if isinstance(each, LeaderAndIsr)][-2:]
        assert [each.tag.metadata_offset for each in hosts] == at[1:]
        last = steps[-1]
        assert isinstance(last, ImageChange)
        # What was replayed a second time is not kept: there is one image in memory.
        assert last.after is reader.observer.controller.image

    play(scenario)


def test_a_checkpoint_is_one_change_with_everything_that_differs() -> None:
    """Created, deleted, and changed below the checkpoint: no batch says so here."""

    async def scenario(reader: Reader) -> None:
        for name in ("kept", "gone"):
            reader.cluster.submit(CreateTopic(name, 2, 3))
        reader.apply()
        await reader.read()
        gone = reader.cluster.controller.image.topics.ids["gone"]
        reader.cluster.submit(DeleteTopic("gone"))
        reader.cluster.submit(CreateTopic("new", 1, 3))
        reader.cluster.submit(UnregisterBroker(3))
        new = reader.cluster.controller.image.topics.ids["new"]
        reader.fetch_checkpoint()
        seen = len(reader.commands)
        (step,) = await reader.read()
        assert isinstance(step, ImageChange)
        assert {(gone, 0), (gone, 1), (new, 0)} <= step.partitions
        stop, host, update = reader.commands[seen:]
        assert isinstance(stop, StopReplica)
        assert [*stop.partition_keys()] == [(gone, 0), (gone, 1)]
        assert isinstance(host, LeaderAndIsr)
        assert not host.is_full
        assert isinstance(update, UpdateMetadata)
        assert update.deleted_topics == (gone,)
        assert update.brokers is not None
        assert 3 not in update.brokers

    play(scenario)


def test_a_new_registration_below_a_checkpoint_gets_everything() -> None:
    """380.5: the agent does not see the former one go, and must not take it for the present one."""

    async def scenario(reader: Reader) -> None:
        reader.cluster.submit(CreateTopic("orders", 1, 3))
        reader.apply()
        await reader.read()
        reader.cluster.submit(UnregisterBroker(OWN))
        reader.cluster.register(OWN)
        reader.fetch_checkpoint()
        seen = len(reader.commands)
        await reader.read()
        full = reader.commands[seen]
        assert isinstance(full, LeaderAndIsr)
        assert full.is_full
        assert full.tag.broker_epoch == reader.cluster.epochs[OWN]

    play(scenario)


def test_a_shutdown_that_began_below_a_checkpoint() -> None:
    """What the broker was given before the shutdown is hosted first, and stopped with the rest."""

    async def scenario(reader: Reader) -> None:
        reader.cluster.submit(CreateTopic("old", 3, 3))
        reader.apply()
        await reader.read()
        reader.cluster.submit(CreateTopic("new", 3, 3))
        reader.cluster.beat(OWN, want_shutdown=True)
        image = reader.cluster.controller.image
        assert image.cluster.brokers[OWN].in_controlled_shutdown
        reader.fetch_checkpoint()
        await reader.read()
        wanted = {image.topics.ids[each] for each in ("old", "new")}
        assert {topic for topic, _ in reader.executed.stopped} == wanted

    play(scenario)


def test_an_agent_that_is_behind_gets_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is bounded: then images are compared, and steps are told one by one again."""
    monkeypatch.setattr(observed_log, "WAITING_STEPS_MAX", 2)

    async def scenario(reader: Reader) -> None:
        reader.apply()
        await reader.read()
        for n in range(6):
            reader.cluster.submit(CreateTopic(f"t{n}", 1, 3))
            reader.apply()
        (step,) = await reader.read()
        assert isinstance(step, ImageChange)
        assert len(step.partitions) == 6
        reader.cluster.submit(CreateTopic("later", 1, 3))
        reader.apply()
        (step,) = await reader.read()
        assert isinstance(step, ImageChange)
        assert len(step.partitions) == 1

    play(scenario)


def test_bytes_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed_log, "WAITING_BYTES_MAX", 1)

    async def scenario(reader: Reader) -> None:
        reader.apply()
        await reader.read()
        for n in range(3):
            reader.cluster.submit(CreateTopic(f"t{n}", 1, 3))
            reader.apply()
        assert len(await reader.read()) == 1

    play(scenario)


def test_a_metadata_transaction_that_was_open_at_the_start_is_one_change() -> None:
    """KIP-868: the image stands before it, and the step behind it has all of its batches."""
    topic = topic_id(1)
    batches: tuple[tuple[MetadataRecord, ...], ...] = (
        (BeginTransactionRecord("t"),),
        (
            TopicRecord("a", topic),
            PartitionRecord(0, topic, (OWN,), (OWN,), leader=OWN, leader_epoch=0),
        ),
        (EndTransactionRecord(),),
    )

    async def scenario(reader: Reader) -> None:
        reader.apply()
        end = reader.observer.end_offset
        for number, records in enumerate(batches):
            values = [encode_record(each) for each in records]
            data = encode_batch(values, base_offset=end, epoch=1, timestamp=5)
            end += len(records)
            reader.observer.controller.on_committed(data, end)
            steps = await reader.read()
            if number == 1:
                assert steps == []
        (change,) = steps
        assert isinstance(change, ImageChange)
        assert change.partitions == {(topic, 0)}
        host = reader.commands[-2]
        assert isinstance(host, LeaderAndIsr)
        assert host.topics[topic].partitions[0].is_new

    play(scenario)


def test_an_observer_that_cannot_apply_ends_the_agent() -> None:
    """Its metadata would be of the past for ever, while heartbeats keep the broker alive."""

    async def scenario(reader: Reader) -> None:
        reader.apply()
        await reader.read()
        end = reader.observer.end_offset
        unknown = encode_batch([b"\x92\xcd\x75\x30\x00"], base_offset=end, epoch=1, timestamp=5)
        reader.observer.controller.on_committed(unknown, end + 1)
        with pytest.raises(AgentError, match="stopped to follow"):
            async with asyncio.timeout(DEADLINE_SECONDS):
                await anext(reader.source)

    play(scenario)


def test_the_subscription_ends_with_the_steps() -> None:
    async def scenario(reader: Reader) -> None:
        reader.apply()
        await reader.read()
        subscribers = reader.observer.controller._subscribers
        assert len(subscribers) == 1
        await reader.close()
        assert len(subscribers) == 0

    play(scenario)


def test_what_two_images_share_is_not_looked_at() -> None:
    cluster = Cluster()
    cluster.start()
    cluster.submit(CreateTopic("a", 3, 2))
    before: MetadataImage = cluster.controller.image
    assert differing_partitions(before, before) == frozenset()
    cluster.submit(CreateTopic("b", 1, 2))
    after = cluster.controller.image
    assert differing_partitions(before, after) == {(after.topics.ids["b"], 0)}
    assert differing_partitions(after, before) == {(after.topics.ids["b"], 0)}


def test_an_agent_whose_observer_fetches_a_checkpoint_is_unfenced_behind_it() -> None:
    """Far behind: its own registration is known by the checkpoint only."""

    async def run() -> None:
        world, handler = World("observer"), Recorder()
        world.other(1)
        world.is_held = True
        running = Running(world, handler)
        await running.until(lambda: handler.of(Registered))
        world.topic("orders", [BROKER, 1])
        world.drop("orders")
        world.topic("bills", [BROKER, 1])
        assert world.observer is not None
        world.observer.fetch_checkpoint(world.controller.image)
        world.is_held = False
        await running.until(
            lambda: [each.state for each in handler.of(StateChanged)][-1:] == [AgentState.FENCED]
        )
        await running.until(lambda: handler.replicas)
        assert [each.topic_name for each in handler.replicas.values()] == ["bills"]

        def is_active() -> bool:
            world.moved()
            return handler.of(StateChanged)[-1].state is AgentState.ACTIVE

        await running.until(is_active)
        running.agent.shut_down()
        assert (await running.ended()).is_clean

    asyncio.run(run())


# ------------------------------------------------------------------ rules taken out


def a_gap_changes_nothing(patch: pytest.MonkeyPatch) -> None:
    """An agent that goes on behind a checkpoint as if nothing had changed below it."""
    patch.setattr(observed_log, "differing_partitions", lambda _before, _after: frozenset())


def what_is_too_much_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """A bounded queue that forgets its oldest steps, in place of comparing images."""

    def add(waiting: _Waiting, published: Published) -> None:
        if published.snapshot_id is None and len(waiting.steps) == observed_log.WAITING_STEPS_MAX:
            waiting.steps.popleft()
        original(waiting, published)

    original = _Waiting.add
    patch.setattr(_Waiting, "add", add)


def only_new_partitions_differ(patch: pytest.MonkeyPatch) -> None:
    """A comparison of images that passes over what is gone."""

    def differing(before: MetadataImage, after: MetadataImage) -> frozenset[PartitionKey]:
        found = original(before, after)
        return frozenset(each for each in found if after.topics.partition(*each) is not None)

    original = differing_partitions
    patch.setattr(observed_log, "differing_partitions", differing)


@pytest.mark.parametrize(
    "taken_out",
    [a_gap_changes_nothing, what_is_too_much_is_dropped, only_new_partitions_differ],
    ids=lambda rule: rule.__name__,
)
def test_a_rule_that_is_taken_out_is_seen(
    taken_out: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some seed shows it: replicas or metadata are not what the image says, or a gap is refused."""
    taken_out(monkeypatch)
    for seed in range(40):
        with monkeypatch.context() as patch:
            try:
                run_at_random(seed, patch)
            except (AssertionError, KeyError, QuorumUsageError, ReplayError):
                return
    raise AssertionError("no seed has shown it")
