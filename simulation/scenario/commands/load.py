"""load N 1:a 1*10 3:b [epoch=4] [voted=2] [leader=3] [hw=5] [producer=7/32766]

Give node N a new disk whose log has these records (epoch:item, or epoch*count for items named
after epoch and offset) and start the node. With ``producer`` the last record allocates that
producer id with that producer epoch instead. ``epoch``, ``voted`` and ``leader`` go into
quorum-state; the default epoch is that of the last record.
"""

from __future__ import annotations

from dataclasses import replace

from quorum.log.election_store import ElectionFile
from quorum.log.layout import WATERMARK_NAMES
from quorum.log.recovery import open_log
from quorum.types import NO_NODE, ElectionState, EpochStart
from simulation.harness.core_disk import BOOTSTRAPPED
from simulation.harness.replica_node import DIRECTORY
from simulation.invariants.mirror import LogMirror
from simulation.invariants.run_observer import RunObserver
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.items import item_batch, producer_batch
from simulation.scenario.member import key_of
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id = args.node()
    records = [record for word in args.rest() for record in _records(args, word)]
    last_epoch = records[-1][0] if records else 0
    voted = args.number("voted", NO_NODE)
    state = ElectionState(
        args.number("epoch", last_epoch),
        args.number("leader", NO_NODE),
        key_of(voted) if voted >= 0 else None,
    )
    if state.epoch == 0:
        state = replace(state, bootstrap_state=BOOTSTRAPPED.bootstrap_state)
    high_watermark = args.number("hw", 0)
    producer = args.text("producer")
    args.finish()
    old = world.member(node_id)
    old.replica = None
    member = world.add(node_id, old.settings, old.share)
    member.clock = old.clock
    world.run_observer.nodes.pop(node_id, None)
    past = LogMirror()
    log, _ = open_log(member.fs, DIRECTORY, old.settings.log)
    epoch_before = 0
    for offset, (epoch, name) in enumerate(records):
        starts = (EpochStart(epoch, offset),) if epoch != epoch_before else ()
        if producer and offset == len(records) - 1:
            batch = producer_batch(*_producer(args, producer), offset=offset, epoch=epoch)
        else:
            batch = item_batch(name or f"e{epoch}o{offset}", offset=offset, epoch=epoch)
        log.append(batch, base_offset=offset, end_offset=offset + 1, epochs=starts)
        epoch_before = epoch
        _lay_down(world.run_observer, past, batch)
    log.flush()
    if high_watermark:
        log.store_high_watermark(high_watermark)
    log.close()
    # These records have no leader changes, so a start believes their epochs by the mark only.
    for name in WATERMARK_NAMES:
        mark = member.fs.open(DIRECTORY / name, writable=True)
        mark.sync()
        mark.close()
    ElectionFile(member.fs, DIRECTORY).save(state)
    world.queue = [each for each in world.queue if node_id not in (each.sender, each.to)]
    world.start(node_id)


def _lay_down(run_observer: RunObserver, past: LogMirror, data: bytes) -> None:
    """Register a batch with the invariants that no leader of this run has written."""
    for batch in run_observer.split(data):
        past.append(batch)
        key = (batch.end_offset, batch.epoch)
        if run_observer.positions.setdefault(key, past.chain) != past.chain:
            raise ScenarioError(f"load: {key} has another history on another node")
        run_observer.batches[key] = batch


def _producer(args: Arguments, text: str) -> tuple[int, int]:
    producer_id, _, epoch = text.partition("/")
    return args.number_in("a producer id", producer_id), args.number_in("its epoch", epoch)


def _records(args: Arguments, word: str) -> list[tuple[int, str]]:
    epoch, colon, name = word.partition(":")
    if colon:
        return [(args.number_in("an epoch", epoch), name)]
    epoch, star, count = word.partition("*")
    if not star:
        raise ScenarioError(f"load: {word} is neither epoch:item nor epoch*count")
    return [(args.number_in("an epoch", epoch), "")] * args.number_in("a count", count)
