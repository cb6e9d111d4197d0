"""Print a path through a model step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from simulation.explore.history import short
from simulation.explore.search import Report
from simulation.explore.space import Space, Step
from simulation.explore.values import Local, Packet
from simulation.invariants.violation import Violation

_WORDS = {
    "persist": "its disk completes the oldest write",
    "timer": "its timer fires",
    "propose": "appends a record of a client",
    "again": "gets no answer and asks again",
    "doom": "has a disk that completes nothing from now on",
}


def report_lines(report: Report) -> Iterator[str]:
    """Yield the steps to a violation with the nodes' states after each, and the violation."""
    space = report.space
    if space is None or report.violation is None:
        return
    state = space.first()
    yield from _nodes(space, state.locals)
    for count, step in enumerate(report.trace, 1):
        yield f"{count:3} {space.ids[step.node]}: {_what(space, step)}"
        try:
            made = space.take(state, step)
        except Violation as violation:
            yield f"VIOLATED {violation}"
            return
        if made is not None:
            changed = [new for old, new in zip(state.locals, made.locals) if old != new]
            yield from _nodes(space, tuple(changed))
            state = made


def _nodes(space: Space, numbers: tuple[int, ...]) -> Iterator[str]:
    for number in numbers:
        yield "      " + describe(space.table.locals[number])


def describe(node: Local) -> str:
    """Return one node as one line; brackets hold its log, as epochs."""
    disk = "" if node.durable == node.log else f", on disk {short(node.durable)}"
    voters = "".join(map(str, node.voters))
    leads = "" if not node.leads else ", leads"
    return (
        f"{node.node_id} {node.role} epoch {node.epoch}{leads}, voters {voters}, "
        f"committed {node.high_watermark} of {short(node.log)}{disk}"
    )


def _what(space: Space, step: Step) -> str:
    name, *about = step.event
    if name == "deliver":
        return f"receives {_packet(space.table.packets[step.packet])}"
    if name == "crash":
        log, election, watermark = about
        return (
            f"crashes and restarts with {short(log)}, epoch {election.epoch}, voted "
            f"{election.voted.id if election.voted else 'for nobody'}, committed {watermark}"
        )
    if name == "remove":
        return f"is asked to remove voter {about[0]}"
    if name == "begin":
        return f"announces itself to {about[0]} again"
    return _WORDS.get(str(name), str(name))


def _packet(packet: Packet) -> str:
    message = packet.message
    detail = ""
    match message:
        case VoteRequest():
            detail = f" at {message.last}" + (" (pre-vote)" if message.pre_vote else "")
        case VoteResponse():
            detail = " granted" if message.granted else " refused"
        case FetchRequest():
            detail = f" from {message.fetch_offset}/{message.last_fetched_epoch}"
        case FetchResponse() if message.records:
            records: Any = message.records
            detail = f" [{records.base_offset}, {records.end_offset})"
        case FetchResponse() if message.diverging is not None:
            detail = f" diverging at {message.diverging}"
        case FetchResponse() if message.snapshot_id is not None:
            detail = f" snapshot {message.snapshot_id}"
        case _:
            pass
    late = ", late" if packet.is_late else ""
    return f"{type(message).__name__}{detail} of {packet.sender} in epoch {packet.epoch}{late}"
