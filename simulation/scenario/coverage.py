"""Count which role changes, responses and timers occurred in scenario runs.

The ``declared_*`` functions list what the tables of the core allow. A test compares them with what
all scenarios have shown, in both directions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quorum.core.contract.events import RoleChanged
from quorum.core.contract.local_events import OPERATOR_REQUESTS
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import RELAYED, REQUESTS, Message, Request, Response
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.protocol.role_transitions import TRANSITIONS, Step
from quorum.core.state import roles
from quorum.core.state.timers import FiredTimer, all_timers, name_of
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.scenario.render import type_name

OF_A_RELAY = " (relay)"
TO_AN_OPERATOR = " (operator)"
_SUCCESSES = {
    VoteRequest: ("granted", "rejected"),
    FetchRequest: ("records", "nothing new", "diverging", "snapshot"),
}
_ONLY_ONE = ("NONE",)
Answer = tuple[str, str]
"""The kind of request, and its answer: an error code, or which of several successes."""


@dataclass(slots=True)
class Coverage:
    """The counts of one scenario, or of several run one after another."""

    transitions: Counter[str] = field(default_factory=Counter)
    answers: Counter[Answer] = field(default_factory=Counter)
    wakes: Counter[str] = field(default_factory=Counter)
    """Ticks in which a node acted although no timer fired."""
    _asked: dict[tuple[NodeId, NodeId, int], str] = field(default_factory=dict)
    _epochs: dict[NodeId, int] = field(default_factory=dict)
    _process_runs: list[Counter[FiredTimer]] = field(default_factory=list)

    def begin(self) -> None:
        """Start the next scenario: forget the nodes of the one before."""
        self._asked.clear()
        self._epochs.clear()

    def started(self, node_id: NodeId, epoch: int, timers: Counter[FiredTimer]) -> None:
        """Note that a node opened its directory; its first role will be in ``epoch``."""
        self._epochs[node_id] = epoch
        self._process_runs.append(timers)

    def role_changed(self, node_id: NodeId, event: RoleChanged) -> None:
        """Count the role change of a node."""
        step = Step.HIGHER if event.epoch > self._epochs[node_id] else Step.SAME
        self._epochs[node_id] = event.epoch
        before, after = getattr(roles, event.before), getattr(roles, event.role)
        self.transitions[transition_name(before, after, step)] += 1

    def asked(self, sender: NodeId, to: NodeId, message: Message, *, of_relay: bool) -> None:
        """Note the kind of a request that arrived at a node; responses are ignored."""
        if isinstance(message, Request):
            kind = type_name(message) + OF_A_RELAY * (of_relay and _is_relayed(message))
            self._asked[(sender, to, message.request_id)] = kind

    def sent(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """Count a response that left a node; requests are ignored."""
        if isinstance(message, Response):
            kind = self._asked.get((to, sender, message.request_id), "never asked")
            self.answers[(kind, _answer_name(message))] += 1

    def answered(self, request: type[object], error: ErrorCode) -> None:
        """Count the answer to an operator's request."""
        self.answers[(request.__name__ + TO_AN_OPERATOR, error.name)] += 1

    @property
    def timers(self) -> Counter[str]:
        """How often each timer fired, by name."""
        found: Counter[str] = Counter()
        for incarnation in self._process_runs:
            for timer, count in incarnation.items():
                found[name_of(timer)] += count
        return found


def report(coverage: Coverage) -> list[str]:
    """Return the declared rows with their counts, then everything seen that no table declares."""
    answers = {f"{kind}: {answer}": n for (kind, answer), n in coverage.answers.items()}
    known = [f"{kind}: {answer}" for kind, answer in sorted(declared_answers())]
    return [
        *_counts("changes of role", coverage.transitions, sorted(declared_transitions())),
        *_counts("answers", answers, known),
        *_counts("timers", coverage.timers, [name_of(timer) for timer in all_timers()]),
        *_counts("done without a timer", coverage.wakes, []),
    ]


def _counts(title: str, shown: Mapping[str, int], declared: Sequence[str]) -> list[str]:
    others = sorted(shown.keys() - set(declared))
    return [
        f"{title}:",
        *(f"{shown.get(each, 0):8} {each}" for each in declared),
        *(f"{shown[each]:8} {each} (in no table)" for each in others),
    ]


def _is_relayed(message: Message) -> bool:
    return isinstance(message, RELAYED)


def _answer_name(message: Response) -> str:
    if message.error != ErrorCode.NONE:
        return message.error.name
    if isinstance(message, VoteResponse):
        return "granted" if message.granted else "rejected"
    if isinstance(message, FetchResponse):
        if message.diverging is not None:
            return "diverging"
        if message.snapshot_id is not None:
            return "snapshot"
        return "records" if message.records else "nothing new"
    return "NONE"


def transition_name(before: type, after: type, step: Step) -> str:
    """Return one row of ``TRANSITIONS`` as text."""
    return f"{before.__name__} -> {after.__name__}, {step.value}"


def declared_transitions() -> set[str]:
    """Return every legal role change."""
    return {transition_name(*each) for each in TRANSITIONS}


def declared_answers() -> set[Answer]:
    """Return every answer that a replica may give to a peer."""
    return {(kind, answer) for kind, answers in answer_table().items() for answer in answers}


def answer_table() -> dict[str, list[str]]:
    """Return the answers of each kind of request: successes, then error codes by number."""
    table = {}
    for request in REQUESTS:
        for name in _names(request):
            table[name] = [*_successes(request), *_texts(request.refusals)]
    for relayed in RELAYED:
        for name in _names(relayed):
            table[name + OF_A_RELAY] = [*_successes(relayed), *_texts(relayed.relay_refusals)]
    for asked in OPERATOR_REQUESTS:
        table[asked.__name__ + TO_AN_OPERATOR] = [*_ONLY_ONE, *_texts(asked.refusals)]
    return table


def _names(request: type[Request]) -> tuple[str, ...]:
    name = request.__name__.removesuffix("Request")
    return ("PreVote", name) if request is VoteRequest else (name,)


def _successes(request: type[Request]) -> tuple[str, ...]:
    return _SUCCESSES.get(request, _ONLY_ONE)


def _texts(codes: frozenset[ErrorCode]) -> list[str]:
    return [code.name for code in sorted(codes)]
