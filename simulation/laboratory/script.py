"""Stories: scripts that a person can read, in the format of scenarios (docs/testing.md).

Each function named ``do_...`` is a command; its docstring is the help text.
"""

from __future__ import annotations

import difflib
import inspect
from dataclasses import replace
from pathlib import Path

from quorate.broker_agent.commands import BrokerCommand
from quorate.client.errors import ClientError, LogTruncationError
from quorate.client.log_consumer import ResetPolicy
from quorum.errors import CommandError, ErrorCode
from quorum.types import NodeId, OffsetAndEpoch, Uuid
from simulation.laboratory.broker import ModelBroker
from simulation.laboratory.consumer import PartitionConsumer
from simulation.laboratory.laboratory import SESSION_MS, Laboratory
from simulation.laboratory.producer import PartitionProducer
from simulation.scenario.grammar import (
    Arguments,
    Scenario,
    ScenarioError,
    parse,
    parse_command,
)
from statemachine.commands import DeleteTopic, ElectionType
from statemachine.sections.producer_state import Applied


class Story:
    """One run of a story: the laboratory, its clients by name, and the lines to print."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.producers: dict[str, PartitionProducer] = {}
        self.consumers: dict[str, PartitionConsumer] = {}
        self._laboratory: Laboratory | None = None

    @property
    def laboratory(self) -> Laboratory:
        """The cluster.

        Raises:
            ScenarioError: There is none yet.
        """
        if self._laboratory is None:
            raise ScenarioError("a story begins with: cluster brokers=(1,2,3)")
        return self._laboratory

    def run(self, text: str) -> list[str]:
        """Run one command; return what it prints.

        Raises:
            ScenarioError: There is no such command, or it does not take these arguments.
        """
        args = parse_command(text)
        command = getattr(self, f"do_{args.name}", None)
        if command is None:
            raise ScenarioError(f"there is no command {args.name}; see help")
        try:
            command(args)
        except CommandError as error:
            self.lines.append(f"refused: {error.code.name}: {error}")
        except LogTruncationError as error:
            bound = "at" if error.is_exact else "at or before"
            self.lines.append(
                f"truncated {bound} {error.divergent_offset}, the record before it is of epoch "
                f"{error.divergent_epoch}"
            )
        except ClientError as error:
            self.lines.append(f"{type(error).__name__}: {error}")
        lines, self.lines = self.lines, []
        return lines or ["ok"]

    # ------------------------------------------------------------------ the cluster

    def do_help(self, args: Arguments) -> None:
        """help: list the commands."""
        args.finish()
        for name, member in inspect.getmembers(type(self), inspect.isfunction):
            if name.startswith("do_"):
                self.lines.append((member.__doc__ or "").split("\n")[0].rstrip("."))

    def do_cluster(self, args: Arguments) -> None:
        """Cluster brokers=(1,2,3) [producers=forgotten]: start and unfence the brokers."""
        brokers = args.numbers("brokers")
        forgets = args.text("producers") == "forgotten"
        args.finish()
        self._laboratory = Laboratory(brokers, keeps_producers=not forgets)

    def do_topic(self, args: Arguments) -> None:
        """Topic NAME replicas=(1,2,3) [unclean=yes]: create a topic with one partition."""
        name, replicas = args.word("a topic"), args.numbers("replicas")
        is_unclean = args.text("unclean") == "yes"
        args.finish()
        configs = {"unclean.leader.election.enable": "true"} if is_unclean else {}
        self.laboratory.create(name, replicas, configs)

    def do_stop(self, args: Arguments) -> None:
        """Stop BROKER...: end its process, without a word to the controller."""
        for broker in self._brokers(args):
            broker.stop()

    def do_start(self, args: Arguments) -> None:
        """Start BROKER...: start it again; it registers and is unfenced."""
        for broker in self._brokers(args):
            self._start(broker)

    def do_shutdown(self, args: Arguments) -> None:
        """Shutdown BROKER...: a controlled shutdown; leaderships move, then its process ends."""
        for broker in self._brokers(args):
            self.laboratory.shut_down(broker)

    def do_heartbeat(self, args: Arguments) -> None:
        """Heartbeat BROKER [epoch=N] [shutdown=yes]: of a registration; print the answer."""
        broker = self.laboratory.brokers[args.node()]
        epoch = args.number("epoch", broker.epoch)
        wants_shutdown = args.text("shutdown") == "yes"
        args.finish()
        self.lines.append(broker.heartbeat(epoch, want_shutdown=wants_shutdown).code.name)
        self._report(self.laboratory.spread())

    def do_fence(self, args: Arguments) -> None:
        """Fence BROKER...: wait until the sessions of these stopped brokers have expired."""
        brokers = self._brokers(args)
        self.laboratory.advance(SESSION_MS + 1000)
        for broker in brokers:
            found = self.laboratory.controller.image.cluster.broker(broker.id)
            if found is None or not found.fenced:
                raise ScenarioError(f"broker {broker.id} is not fenced: stop or hold it first")

    def do_hold(self, args: Arguments) -> None:
        """Hold BROKER...: the controller's commands do not reach it for now."""
        self.laboratory.held.update(args.nodes())

    def do_deliver(self, args: Arguments) -> None:
        """Deliver BROKER [first=N] [old=last]: held commands reach it; print what it refuses.

        With first=N only so many, and the others stay held. With old=last those for former
        registrations arrive after all others.
        """
        broker_id, count = args.node(), args.number("first", 0)
        are_old_last = args.text("old") == "last"
        args.finish()
        if not count:
            self.laboratory.held.discard(broker_id)
        refused = self.laboratory.deliver(broker_id, count=count or None, are_old_last=are_old_last)
        self._report(refused)

    def do_hosted(self, args: Arguments) -> None:
        """Hosted BROKER: the logs on its disks."""
        broker = self.laboratory.brokers[args.node()]
        args.finish()
        for (topic_id, _), replica in broker.replicas.items():
            start, end = replica.log_start.offset, replica.log_end.offset
            self.lines.append(f"{self._name(topic_id)} log=[{start},{end})")
        if not broker.replicas:
            self.lines.append("nothing")

    def do_metadata(self, args: Arguments) -> None:
        """Metadata BROKER: the leaders that it names to its clients."""
        broker = self.laboratory.brokers[args.node()]
        args.finish()
        for topic_id, partitions in broker.metadata.items():
            for leader, epoch in partitions.values():
                self.lines.append(f"{self._name(topic_id)} leader={leader} epoch={epoch}")

    def do_cut(self, args: Arguments) -> None:
        """Cut BROKER BROKER: these two do not reach each other."""
        self.laboratory.cuts.add(frozenset(args.nodes()))

    def do_heal(self, args: Arguments) -> None:
        """heal: all brokers reach each other."""
        args.finish()
        self.laboratory.cuts.clear()

    def do_elect(self, args: Arguments) -> None:
        """Elect TOPIC type=preferred|unclean: ask the controller for an election."""
        name, kind = args.word("a topic"), args.text("type", "preferred")
        args.finish()
        self.laboratory.elect(name, ElectionType[kind.upper()])

    # ------------------------------------------------------------------ logs

    def do_replicate(self, args: Arguments) -> None:
        """Replicate TOPIC [to=BROKER]: followers fetch until nothing changes; one: once."""
        name, follower = args.word("a topic"), args.number("to", 0)
        args.finish()
        if follower:
            self.laboratory.fetch(name, follower)
        else:
            self.laboratory.replicate(name)

    def do_isr(self, args: Arguments) -> None:
        """Isr TOPIC leader=BROKER members=(1,2): a leader asks for another ISR."""
        name, leader = args.word("a topic"), args.number("leader")
        members = args.numbers("members")
        args.finish()
        laboratory = self.laboratory
        code = laboratory.change_isr(name, laboratory.replica(name, leader), members)
        if code is not ErrorCode.NONE:
            self.lines.append(f"refused: {code.name}")

    def do_append(self, args: Arguments) -> None:
        """Append TOPIC VALUE... [to=BROKER]: append records without a producer."""
        name, to, values = args.word("a topic"), args.number("to", 0), args.rest()
        args.finish()
        laboratory = self.laboratory
        for value in values:
            replica = laboratory.append(name, to or laboratory.state(name).leader)
            self._appended(value, replica.log.append(value, replica.leader_epoch))
            replica.advance_high_watermark()

    def do_lay(self, args: Arguments) -> None:
        """Lay TOPIC BROKER epochs=(1x21,3x10): put records of these epochs into its log."""
        name, broker_id = args.word("a topic"), args.node()
        runs = args.text("epochs").strip("()").split(",")
        args.finish()
        log = self.laboratory.replica(name, broker_id).log
        for run in runs:
            epoch, _, count = run.partition("x")
            for _ in range(int(count)):
                log.append(f"{broker_id}-{epoch}-{log.end.offset}", int(epoch))

    def do_delete(self, args: Arguments) -> None:
        """Delete TOPIC before=N: delete the records below an offset on every replica."""
        name, before = args.word("a topic"), args.number("before")
        args.finish()
        for broker_id in self.laboratory.state(name).replicas:
            log = self.laboratory.replica(name, broker_id).log
            epoch = next((e for at, e, _ in log.records() if at == before - 1), 0)
            log.delete_records(OffsetAndEpoch(before, epoch))

    def do_drop(self, args: Arguments) -> None:
        """Drop TOPIC: delete a topic."""
        name = args.word("a topic")
        args.finish()
        self.laboratory.submit(DeleteTopic(name))

    def do_show(self, args: Arguments) -> None:
        """Show TOPIC: the partition, and every replica of it."""
        name = args.word("a topic")
        args.finish()
        state = self.laboratory.state(name)
        self.lines.append(
            f"leader={state.leader} epoch={state.leader_epoch} isr={_list(state.isr)}"
        )
        for broker_id in state.replicas:
            self.lines.append(self._shown(name, broker_id))

    # ------------------------------------------------------------------ producers

    def do_producer(self, args: Arguments) -> None:
        """Producer NAME topic=TOPIC [id=TRANSACTIONAL_ID]: a new process of a producer."""
        name, topic = args.word("a name"), args.text("topic")
        transactional_id = args.text("id") or None
        args.finish()
        made = self.producers[name] = PartitionProducer(self.laboratory, topic, transactional_id)
        session = made.session
        self.lines.append(f"producer {session.producer_id} epoch {session.producer_epoch}")

    def do_send(self, args: Arguments) -> None:
        """Send PRODUCER VALUE... [to=BROKER] [lost=yes]: with lost=yes no answer arrives."""
        producer = self._producer(args)
        to, is_lost, values = args.number("to", 0), args.text("lost") == "yes", args.rest()
        args.finish()
        for value in values:
            self._appended(value, producer.send(value, to=to or None, is_lost=is_lost))

    def do_repeat(self, args: Arguments) -> None:
        """Repeat PRODUCER [to=BROKER]: send the oldest record without an answer again."""
        producer, to = self._producer(args), args.number("to", 0)
        args.finish()
        session = producer.session
        if not session.open:
            self.lines.append("it has the answer to every record")
            return
        value = session.open[session.oldest_open]
        self._appended(value, producer.repeat(to=to or None))

    # ------------------------------------------------------------------ consumers

    def do_consumer(self, args: Arguments) -> None:
        """Consumer NAME topic=TOPIC [reset=none|earliest|latest]: a consumer at offset 0."""
        name, topic = args.word("a name"), args.text("topic")
        reset = ResetPolicy(args.text("reset", "none"))
        args.finish()
        self.consumers[name] = PartitionConsumer(self.laboratory, topic, reset=reset)

    def do_poll(self, args: Arguments) -> None:
        """Poll CONSUMER [from=BROKER]: read once, from the leader or another broker."""
        consumer, asks = self._consumer(args), args.number("from", 0)
        args.finish()
        consumer.asks = asks or None
        before = consumer.position
        records = consumer.poll()
        state = consumer.consumer.state
        if state is not None:
            self.lines.append(f"records below {state.offset} are deleted; goes on there")
            return
        self.lines += [
            f"{each.offset} e{each.leader_epoch} {_text(each.value)}" for each in records
        ]
        if not records:
            moved = consumer.position
            is_back = moved.offset < before.offset
            self.lines.append(f"moved to {moved.offset}" if is_back else "nothing new")

    def do_seek(self, args: Arguments) -> None:
        """Seek CONSUMER OFFSET [epoch=N]: read from there; the epoch before it is verified."""
        consumer, offset = self._consumer(args), args.number_in("an offset", args.word("an offset"))
        epoch = args.number("epoch", -1)
        args.finish()
        consumer.consumer.seek(offset, epoch)

    def do_restart(self, args: Arguments) -> None:
        """Restart CONSUMER: a new process goes on from the stored position."""
        consumer = self._consumer(args)
        args.finish()
        consumer.restart()

    # ------------------------------------------------------------------ parts

    def _start(self, broker: ModelBroker) -> None:
        broker.start()
        self._report(self.laboratory.spread())
        broker.heartbeat()
        self._report(self.laboratory.spread())

    def _report(self, refused: list[tuple[NodeId, BrokerCommand, ErrorCode]]) -> None:
        for broker_id, command, code in refused:
            self.lines.append(f"broker {broker_id} refuses {type(command).__name__}: {code.name}")

    def _name(self, topic_id: Uuid) -> str:
        return self.laboratory.controller.image.topics.names.get(topic_id, "a deleted topic")

    def _brokers(self, args: Arguments) -> list[ModelBroker]:
        return [self.laboratory.brokers[each] for each in args.nodes()]

    def _producer(self, args: Arguments) -> PartitionProducer:
        name = args.word("a producer")
        if name not in self.producers:
            raise ScenarioError(f"there is no producer {name}")
        return self.producers[name]

    def _consumer(self, args: Arguments) -> PartitionConsumer:
        name = args.word("a consumer")
        if name not in self.consumers:
            raise ScenarioError(f"there is no consumer {name}")
        return self.consumers[name]

    def _appended(self, value: str, applied: Applied) -> None:
        self.lines.append(f"{value} is at {applied.offset - 1} in epoch {applied.epoch}")

    def _shown(self, name: str, broker_id: NodeId) -> str:
        broker, replica = (
            self.laboratory.brokers[broker_id],
            self.laboratory.replica(name, broker_id),
        )
        role = "leader" if replica.is_leader else "follower" if replica.has_role else "stopped"
        role = role if broker.is_running else "down"
        epochs = ",".join(f"{each.epoch}@{each.start_offset}" for each in replica.log.epochs)
        return (
            f"{broker_id} {role} epoch={replica.leader_epoch} "
            f"log=[{replica.log_start.offset},{replica.log_end.offset}) "
            f"hw={replica.high_watermark} epochs=({epochs})"
        )


def _list(values: tuple[int, ...]) -> str:
    return "(" + ",".join(map(str, values)) + ")"


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode(errors="replace")


def run_story(path: Path, *, rewrite: bool = False) -> list[str]:
    """Run a story; return a text for each block whose output differs from the file.

    Raises:
        ScenarioError: The file is no story, or a command cannot be carried out.
    """
    story, scenario = Story(), parse(path, path.read_text(encoding="utf-8"))
    blocks, differences = [], []
    for block in scenario.blocks:
        try:
            seen = story.run(block.command)
        except ScenarioError as error:
            raise ScenarioError(f"{path}:{block.line}: {error}") from error
        blocks.append(replace(block, output=seen))
        if seen != block.output:
            lines = difflib.unified_diff(block.output, seen, "expected", "seen", lineterm="", n=2)
            differences.append("\n".join([f"{path}:{block.line}: {block.command}", *lines]))
    if rewrite:
        path.write_text(Scenario(path, scenario.header, blocks).text(), encoding="utf-8")
    return differences
