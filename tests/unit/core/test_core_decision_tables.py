"""The reaction of a node in each role to each message, local event and silence, as tables.

``decisions/SITUATION.txt`` has a section for each message: the message as it should be, from an
older and a newer epoch, of another cluster, from a stranger, or as a refusal, and below each what
the node decides, stores and sends, and the effects of its next deadlines if these differ from those
without the message. The last sections show the node for a while without any response, with every
request failing, or with every request refused.

After a change of a rule, rewrite the tables with ``--rewrite`` and explain every line of the diff
by the protocol.
"""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from quorum.core.contract.local_events import (
    AddVoter,
    ConnectionRefused,
    DamageFound,
    FeatureLevels,
    ListenerEndpoints,
    LocalEvent,
    LogVerified,
    RemoveVoter,
    ReplayStopped,
    RequestFailed,
    Resign,
    ShutDown,
    TransferLeadership,
    UpdateVoter,
)
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message
from quorum.core.node.raft_node import RaftNode
from quorum.core.node.routing import PROOF_HANDLERS
from quorum.errors import ErrorCode
from quorum.types import Endpoint, NodeId, VersionRange, Voter
from simulation.harness.arrival import arrived
from tests.support.core_disk import key, voter
from tests.support.core_limits import fetch_answers, fetches, limits, shown
from tests.support.core_situations import SITUATIONS, intact_messages
from tests.support.core_transcript import Transcript, indented, text_of
from tests.support.core_waiting_situations import WAITING

pytestmark = pytest.mark.interpreted  # it copies cores by pickle

ALL = {**SITUATIONS, **WAITING}
FOLDER = Path(__file__).parent / "decisions"
PEERS = {"relay": 9, "relay-of-a-silent-leader": 9, "writing-leader": 2}
"""The sender, where it is not the receiver of the last request."""
SOME = {
    "limits": ("leader", "follower", "bootstrap_state", "relay"),
    "fetch positions": (
        "leader", "relay", "leader-with-a-snapshot", "writing-leader", "leader-adding-a-voter",
        "relay-of-a-silent-leader",
    ),
    "fetch answers": ("follower", "observer", "below-a-relay", "relay", "prospective"),
}  # fmt: skip
"""Further sections, and the situations that have them."""
WAKES = 2
"""Deadlines after each message."""
LONG_WAKES = 12
"""Deadlines of a time in which requests come to nothing."""
REFUSALS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INCONSISTENT_CLUSTER_ID,
)
RESPONSES = {
    "AddVoterRequest": "VoterChangeResponse",
    "RemoveVoterRequest": "VoterChangeResponse",
    "UpdateVoterRequest": "VoterChangeResponse",
}
LOCAL_EVENTS: tuple[LocalEvent, ...] = (
    AddVoter(31, voter(9), timeout_ms=900),
    AddVoter(31, voter(3)),
    AddVoter(31, Voter(key(9), (*voter(9).endpoints, *voter(3).endpoints))),
    RemoveVoter(31, key(3), timeout_ms=900),
    RemoveVoter(31, key(9)),
    UpdateVoter(31, voter(2)),
    UpdateVoter(31, voter(9)),
    TransferLeadership(31, 3),
    TransferLeadership(31),
    Resign(),
    ShutDown(),
    ReplayStopped("an unknown record"),
    ConnectionRefused(1),
    ConnectionRefused(2),
    ConnectionRefused(3),
    ListenerEndpoints((Endpoint("CONTROLLER", "moved", 9000),)),
    FeatureLevels((VersionRange("f", 1, 2),), {"f": 2, "kraft.version": 1}),
    DamageFound("a bad batch"),
    LogVerified(0, 3, "a bad batch"),
    LogVerified(0),
    LogVerified(0, 0, "a bad batch"),
    LogVerified(7, 3, "a bad batch"),
)


def response_to(request: str) -> str:
    return RESPONSES.get(request, request.replace("Request", "Response"))


class Table:
    """One pickled node, and its requests."""

    def __init__(self, situation: str) -> None:
        self.situation = situation
        cluster, self.node_id = ALL[situation]()
        self.now_ms = cluster.now_ms
        node = cluster[self.node_id]
        transcript = Transcript(node, self.now_ms)
        transcript.do(lambda node: node.tick(self.now_ms))
        sent = [
            *((to, each) for by, to, each in cluster.sent if by == self.node_id),
            *transcript.sent,
        ]
        self.asked: dict[tuple[NodeId, str], int] = {}
        """The newest request of each type to each peer, the newest of all last."""
        for to, each in sent:
            if type(each).__name__.endswith("Request"):
                self.asked.pop((to, type(each).__name__), None)
                self.asked[to, type(each).__name__] = each.request_id
        self.deadline_ms = transcript.deadline_ms
        last = [to for to, _ in self.asked]
        self.peer = last[-1] if last else 2 if self.node_id == 1 else 1
        self.peer = PEERS.get(situation, self.peer)
        self.packed = pickle.dumps(node, -1)
        self.role = node.role_name
        self.epoch = node.epoch
        self.messages: dict[str, Any] = {
            kind.__name__: self._answering(message, self.peer)
            for kind, message in intact_messages(node, self.peer, random.Random(1)).items()
        }
        self.baseline = self.transcript().wakes(WAKES)

    def transcript(self) -> Transcript:
        node = pickle.loads(self.packed)
        made = Transcript(node, self.now_ms)
        made.deadline_ms = self.deadline_ms
        return made

    def _answering(self, message: Any, sender: NodeId) -> Any:
        """A response with the number of the newest request that it may answer."""
        name = type(message).__name__
        asked = [
            number
            for (to, request), number in self.asked.items()
            if to == sender and response_to(request) == name
        ]
        return replace(message, request_id=asked[-1]) if asked else message

    def kinds(self) -> list[str]:
        """Messages that have a section: where much waits, those that may end the waiting."""
        if self.situation in SITUATIONS:
            return sorted(self.messages)
        answers = {response_to(request) for _, request in self.asked}
        return sorted({"FetchRequest", "VoteRequest", *answers} & {*self.messages})

    def variants(self, name: str) -> Iterator[tuple[str, NodeId, Message]]:
        """Yield a name, a sender and a message."""
        message: Any = self.messages[name]
        names = {each.name for each in fields(message)}
        yield "as it should be", self.peer, message
        if "epoch" in names:
            yield "of an older epoch", self.peer, replace(message, epoch=message.epoch - 1)
            yield "of a newer epoch", self.peer, replace(message, epoch=message.epoch + 2)
        if "cluster_id" in names:
            yield "of another cluster", self.peer, replace(message, cluster_id="another")
        if "leader_id" in names:
            newer = replace(message, epoch=message.epoch + 1, leader_id=3)
            yield "with a newer leader", self.peer, newer
            yield "without a leader", self.peer, replace(message, leader_id=-1)
        if "error" in names:
            for error in REFUSALS:
                yield f"as {error.name}", self.peer, replace(message, error=error)
            late = replace(message, request_id=message.request_id + 1000)
            yield "never asked for", self.peer, late
            yield "from another than was asked", 3, message
        else:
            yield "from a stranger", 77, message

    def section(self, name: str) -> str:
        """One section of the file: about a message, or one of ``LONG``."""
        if name == SECTIONS[0]:
            return "\n".join([name, *indented(self.baseline)])
        if name in LONG:
            transcript = self.transcript()
            LONG[name](transcript, self)
            return "\n".join([f"## {name}", *indented(transcript.lines)])
        if name == "local events":
            return self._table(name, self._local_events())
        if name == "limits":
            return self._table(name, self._limits())
        if name == "fetch positions":
            asked = fetches(self.messages["FetchRequest"])
            return self._table(name, self._received(asked))
        if name == "fetch answers":
            me = key(self.node_id)
            answers = fetch_answers(self.messages["FetchResponse"], me)
            return self._table(name, self._received(answers))
        received = (
            (label, lambda node, s=sender, m=message: node.receive(self.now_ms, s, m))
            for label, sender, message in self.variants(name)
        )
        return self._table(text_of(self.messages[name]), received)

    def _local_events(self) -> Iterator[tuple[str, Callable[[RaftNode], Any]]]:
        failed = [RequestFailed(to, number) for (to, _), number in self.asked.items()]
        for event in (*LOCAL_EVENTS, *failed):
            yield text_of(event), lambda node, f=event: node.on_local_event(self.now_ms, f)

    def _received(
        self, messages: Iterator[tuple[str, Any]]
    ) -> Iterator[tuple[str, Callable[[RaftNode], Any]]]:
        for label, message in messages:
            yield label, lambda node, m=message: node.receive(self.now_ms, self.peer, m)

    def _limits(self) -> Iterator[tuple[str, Callable[[RaftNode], Any]]]:
        for name, message in self.messages.items():
            if not name.endswith("Request"):
                continue
            for each in fields(message):
                for value in limits(getattr(message, each.name)):
                    if each.name != "request_id":
                        changed = replace(message, **{each.name: value})
                        yield (
                            f"{name} {each.name}={shown(value)}",
                            lambda node, m=changed: node.receive(self.now_ms, self.peer, m),
                        )
            if type(message) in (FetchRequest, *PROOF_HANDLERS):
                unproven = arrived(message, is_proven=False)
                yield (
                    f"{name} from an unproven caller",
                    lambda node, m=unproven: node.receive(self.now_ms, self.peer, m),
                )

    def _table(self, heading: str, cases: Iterator[tuple[str, Callable[[RaftNode], Any]]]) -> str:
        """What the node does in each case; equal ones together."""
        found: dict[tuple[str, ...], list[str]] = {}
        for label, entry in cases:
            transcript = self.transcript()
            transcript.do(entry)
            done = [*transcript.lines]
            later = transcript.wakes(WAKES)
            done += _difference(later, self.baseline)
            value = label.split()[-1]
            if "/" in value:
                done = [each.replace(value, "it") for each in done]
            found.setdefault(tuple(done), []).append(label)
        lines = [f"## {heading}"]
        for done, labels in found.items():
            when = "in every form" if len(found) == 1 else ", ".join(labels)
            lines += [f"{when}:", *indented(done or ("nothing",))]
        return "\n".join(lines)

    def names(self) -> list[str]:
        """All sections, in the order of the file."""
        some = [name for name, where in SOME.items() if self.situation in where]
        return [SECTIONS[0], *self.kinds(), *some, "local events", *LONG]


def _difference(later: list[str], baseline: list[str]) -> list[str]:
    """Return the actions that come later than without the message, and those that are gone."""
    more, less = Counter(later), Counter(baseline)
    more.subtract(baseline)
    less.subtract(later)
    return [
        *(each for each in dict.fromkeys(later) for _ in range(more[each])),
        *(f"not {each}" for each in dict.fromkeys(baseline) for _ in range(less[each])),
    ]


Answering = Callable[[RaftNode, int, NodeId, Any], Any]


def _with_every_request(transcript: Transcript, made: Table, answer: Answering) -> None:
    """Let each request of the node, also those that are on the way already, get such an answer."""
    waiting = [(to, name, number) for (to, name), number in made.asked.items()]
    for _ in range(LONG_WAKES):
        seen = len(transcript.sent)
        for to, name, number in waiting:
            transcript.do(
                lambda node, t=to, n=name, r=number: answer(node, transcript.now_ms, t, (n, r))  # type: ignore[misc]
            )
        if len(transcript.sent) == seen and not transcript.wake():
            return
        waiting = [
            (to, type(each).__name__, each.request_id)
            for to, each in transcript.sent[seen:]
            if type(each).__name__.endswith("Request")
        ]


def _silence(transcript: Transcript, made: Table) -> None:
    transcript.wakes(LONG_WAKES)


def _failures(transcript: Transcript, made: Table) -> None:
    def answer(node: RaftNode, now_ms: int, peer: NodeId, asked: Any) -> Any:
        return node.on_local_event(now_ms, RequestFailed(peer, asked[1]))

    _with_every_request(transcript, made, answer)


def _refusals(transcript: Transcript, made: Table) -> None:
    def answer(node: RaftNode, now_ms: int, peer: NodeId, asked: Any) -> Any:
        like = made.messages[response_to(asked[0])]
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        refusal = replace(like, request_id=asked[1], error=error, leader_id=-1)
        return node.receive(now_ms, peer, refusal)

    _with_every_request(transcript, made, answer)


LONG: dict[str, Callable[[Transcript, Table], None]] = {
    "nobody answers": _silence,
    "every request fails": _failures,
    "every request is refused": _refusals,
}


@cache
def table(situation: str) -> Table:
    return Table(situation)


@cache
def expected(situation: str) -> dict[str, str]:
    """The sections of a file, by their heading; of a message, by its type."""
    file = FOLDER / f"{situation}.txt"
    if not file.exists():
        return {}
    sections = file.read_text(encoding="utf-8").split("\n\n")[1:]
    found = {}
    for section in sections:
        heading = section.partition("\n")[0].removeprefix("## ")
        found[heading if heading in SECTIONS else heading.split()[0]] = section.strip()
    return found


SECTIONS = ("without a message:", *SOME, "local events", *LONG)
CASES = [(situation, name) for situation in ALL for name in expected(situation) or ("new",)]


@pytest.mark.parametrize(("situation", "name"), CASES)
def test_a_decision_table_is_as_it_was_reviewed(
    situation: str, name: str, request: pytest.FixtureRequest
) -> None:
    made = table(situation)
    if not request.config.getoption("--rewrite"):
        assert made.section(name) == expected(situation)[name]
    elif name in ("new", SECTIONS[0]):
        heading = f"# {situation}: node {made.node_id}, {made.role} in epoch {made.epoch}"
        peer = f"# Node {made.peer} sends, if nothing else is said."
        text = "\n\n".join([f"{heading}\n{peer}", *map(made.section, made.names())])
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{situation}.txt").write_text(f"{text}\n", encoding="utf-8")


def test_every_section_is_in_its_file() -> None:
    for situation in ALL:
        assert table(situation).names() == [*expected(situation)]
