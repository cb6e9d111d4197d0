"""State of one node as lines, for ``show`` and ``restart``."""

from __future__ import annotations

from collections.abc import Callable

from quorum.batch import scan_batches
from quorum.log.election_store import ElectionFile
from quorum.types import OffsetAndEpoch, ReplicaKey
from simulation.harness.replica_node import DIRECTORY
from simulation.scenario.items import items_of, record_texts
from simulation.scenario.member import Member
from simulation.scenario.render import election_text
from snapshot.naming import parse_name
from statemachine.records import METADATA_VERSION

_TEXTS_MAX = 12
_READ_BYTES = 1 << 30


def roles(member: Member) -> list[str]:
    """Role, epoch and log end of the node."""
    if member.replica is None:
        return [f"{member.node_id} down"]
    node = member.replica.node
    leader = "none" if node.leader_id < 0 else str(node.leader_id)
    can_write = " can_write" if node.can_write else ""
    return [
        f"{member.node_id} {node.role_name} epoch={node.epoch} leader={leader}"
        f" log=[{node.log_start.offset},{node.log_end.offset}) hw={node.high_watermark}{can_write}"
    ]


def log(member: Member) -> list[str]:
    """The node's log, unwritten records included; one line per epoch."""
    if member.replica is None:
        return [f"{member.node_id} down"]
    node, driver = member.replica.node, member.replica.driver
    start, end = node.log_start.offset, node.log_end.offset
    flushed_end = max(start, node.flushed_end_offset)
    flushed = "" if flushed_end == end else f" flushed={flushed_end}"
    lines = [f"{member.node_id} log [{start},{end}) hw={node.high_watermark}{flushed}"]
    by_epoch: dict[int, tuple[int, int, list[str]]] = {}
    offset = start
    while offset < end:
        data = driver.read_records(offset, _READ_BYTES, end)
        for header in scan_batches(data, verify_crc=False):
            if header.end_offset <= start:
                continue
            base, _, texts = by_epoch.get(header.epoch, (header.base_offset, 0, []))
            texts += record_texts(data, header)
            by_epoch[header.epoch] = (base, header.end_offset, texts)
            offset = header.end_offset
    for epoch, (base, stop, texts) in by_epoch.items():
        lines.append(f"  epoch {epoch} [{base},{stop}) {_some(texts)}")
    return lines


def _some(texts: list[str]) -> str:
    if len(texts) <= _TEXTS_MAX:
        return " ".join(texts)
    half = _TEXTS_MAX // 2
    return " ".join([*texts[:half], f"({len(texts) - 2 * half} more)", *texts[-half:]])


def replicas(member: Member) -> list[str]:
    """The leader's view of the other replicas' progress."""
    if member.replica is None or not member.replica.node.is_leader:
        return [f"{member.node_id} does not lead"]
    node = member.replica.node
    start, end = node.log_start.offset, node.log_end.offset
    lines = [
        f"leader {node.me.id} epoch={node.epoch} lso={start} leo={end} hw={node.high_watermark}"
    ]
    for view in node.replicas():
        kind = "voter" if view.is_voter else "observer"
        if view.key.id != node.me.id:
            known = "nothing" if view.log_end_offset < 0 else str(view.log_end_offset)
            lag = f" lag={end - view.log_end_offset}" if 0 <= view.log_end_offset < end else ""
            below = view.subtree
            subtree = f" subtree={below.members} low={below.low}" if below is not None else ""
            lines.append(f"  {view.key.id} {kind} fetched={known}{lag}{subtree}")
    return lines


def relay(member: Member) -> list[str]:
    """The node's upstream path, and the replicas that fetch from it."""
    if member.replica is None:
        return [f"{member.node_id} down"]
    tree = member.replica.node.tree()
    route = ">".join(str(key.id) for key in tree.path) or "leader"
    lines = [f"{member.node_id} fetches through {route}"]
    for view in tree.downstream:
        below = f" subtree={view.subtree.members}" if view.subtree is not None else ""
        lines.append(f"  {view.key.id} fetched={view.log_end_offset}{below}")
    return lines


def versions(member: Member) -> list[str]:
    """The levels of metadata.version that each voter supports, as the leader knows them."""
    if member.replica is None:
        return [f"{member.node_id} down"]
    views = [view for view in member.replica.node.replicas() if view.is_voter]
    ranges = {
        view.key.id: f"{each.lowest} to {each.highest}"
        for view in views
        for each in view.supported or ()
        if each.name == METADATA_VERSION
    }
    return [
        f"  {view.key.id} supports {ranges.get(view.key.id, 'unknown levels')}" for view in views
    ]


def voters(member: Member) -> list[str]:
    """The voter set in force, removed voters, and a pending change."""
    if member.replica is None:
        return [f"{member.node_id} down"]
    node = member.replica.node
    found = ",".join(_key_text(voter.key) for voter in node.voters)
    line = f"{member.node_id} voters ({found}) at {node.voters_offset}"
    if node.removed_voters:
        line += f" removed ({','.join(_key_text(key) for key in node.removed_voters)})"
    pending = node.pending_change
    if pending is not None:
        line += f" pending {pending.kind} {pending.voter.key.id}"
    return [line]


def _key_text(key: ReplicaKey) -> str:
    disk = key.directory_id[-2]
    return f"{key.id}/disk{disk}" if disk else str(key.id)


def image(member: Member) -> list[str]:
    """The applied image."""
    if member.replica is None:
        return [f"{member.node_id} down"]
    seen = member.replica.controller.image
    at = OffsetAndEpoch(seen.provenance.end_offset, seen.provenance.epoch)
    return [f"{member.node_id} image {at} {_some(items_of(seen))}".rstrip()]


def files(member: Member) -> list[str]:
    """Names in the partition directory."""
    return [f"{member.node_id} {name}" for name in member.fs.list_directory(DIRECTORY)]


def epochs(member: Member) -> list[str]:
    """The epoch history on disk."""
    if member.stores is None:
        return [f"{member.node_id} down"]
    starts = [f"{each.epoch}@{each.start_offset}" for each in member.stores.log.epochs]
    return [f"{member.node_id} epochs {' '.join(starts)}".rstrip()]


def snapshots(member: Member) -> list[str]:
    """Checkpoint files and the state of each."""
    found = []
    for name in member.fs.list_directory(DIRECTORY):
        parsed = parse_name(name)
        if parsed is not None:
            found.append(f"{parsed[0]} {parsed[1].name.lower()}")
    return [f"{member.node_id} snapshots {', '.join(found)}".rstrip()]


def election(member: Member) -> list[str]:
    """The contents of ``quorum-state`` on disk."""
    return [f"{member.node_id} {election_text(ElectionFile(member.fs, DIRECTORY).load())}"]


def divergence(member: Member) -> list[str]:
    """Truncations by diverging responses since the last time this was shown."""
    cuts = ", ".join(str(each.end_offset) for each in member.diverged)
    count = len(member.diverged)
    member.diverged.clear()
    return [
        f"{member.node_id} diverging responses={count}" + (f" truncated to {cuts}" if cuts else "")
    ]


def chain(member: Member) -> list[str]:
    """Results of digest comparisons in this process run."""
    if member.replica is None:
        return [f"{member.node_id} down"]
    seen = member.replica.node.chain
    resolution = "none" if seen.resolution is None else seen.resolution.stage.value
    return [
        f"{member.node_id} digests equal={seen.equal} different={seen.different} "
        f"too_early={seen.too_early} unknown={seen.unknown} divergence={resolution}"
    ]


View = Callable[[Member], list[str]]
VIEWS: dict[str, View] = {
    view.__name__: view
    for view in (
        roles,
        log,
        replicas,
        voters,
        versions,
        relay,
        image,
        files,
        epochs,
        snapshots,
        election,
        divergence,
        chain,
    )
}


def boot_lines(member: Member) -> list[str]:
    """Return what opening the directory found and repaired."""
    if member.stores is None or member.replica is None:
        return []
    report, node_id = member.stores.report, member.node_id
    state = member.stores.state
    lines = [
        f"{node_id}: starts with log [{state.log_start.offset},{state.log_end.offset}) "
        f"hw={state.high_watermark} {election_text(state.election)}"
    ]
    recovery = report.recovery
    if recovery.torn_bytes:
        lines.append(f"{node_id}: {recovery.torn_bytes} torn bytes dropped: {recovery.torn_cause}")
    if recovery.restored_start:
        lines.append(f"{node_id}: log start {recovery.start} restored: {recovery.restored_start}")
    if recovery.finished_replacement is not None:
        lines.append(f"{node_id}: log replaced by snapshot {recovery.finished_replacement}")
    if recovery.rebuilt:
        lines.append(f"{node_id}: rebuilt {', '.join(sorted(recovery.rebuilt))}")
    if report.loaded_snapshot is not None:
        lines.append(f"{node_id}: loaded snapshot {report.loaded_snapshot}")
    lines += [f"{node_id}: moved aside snapshot {taken}" for taken, _ in report.corrupt_snapshots]
    lines += [f"{node_id}: vote floor {loss.end}: {damage}" for damage, loss in report.losses]
    return lines
