"""Answers leave in order, those of one receiver in one call, and are counted."""

import sys
from collections.abc import Sequence

import pytest

from quorate.controller.answer_delivery import AnswerDelivery
from quorate.controller.requests import (
    Answer,
    OnAnswers,
    PendingCommand,
    RequestContext,
    each_answer,
)
from quorum.errors import ErrorCode
from statemachine.commands import (
    Command,
    CommitPosition,
    CreateTopic,
    DeleteTopic,
    UnregisterBroker,
    WithPosition,
)
from tests.support.controller_bench import Bench, set_config

CREATE, DELETE = CreateTopic("a"), DeleteTopic("a")


class Receivers:
    """What each of them gets, call by call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self.on_answers: dict[str, OnAnswers] = {name: self._receiver(name) for name in "ab"}

    def _receiver(self, name: str) -> OnAnswers:
        def take(answered: Sequence[PendingCommand]) -> None:
            self.calls.append((name, [pending.tag for pending in answered]))

        return take

    def pending(
        self, name: str, tag: int, command: Command = CREATE, code: ErrorCode = ErrorCode.NONE
    ) -> PendingCommand:
        made = PendingCommand(command, RequestContext(), self.on_answers[name], tag)
        made.answer = Answer(code)
        return made


@pytest.mark.parametrize(
    ("names", "calls"),
    [
        ("", []),
        ("a", [("a", [0])]),
        ("aaa", [("a", [0, 1, 2])]),
        ("aabba", [("a", [0, 1]), ("b", [2, 3]), ("a", [4])]),
        ("ab", [("a", [0]), ("b", [1])]),
        ("abbb", [("a", [0]), ("b", [1, 2, 3])]),
    ],
)
def test_one_call_for_what_one_receiver_gets_in_a_row(
    names: str, calls: list[tuple[str, list[int]]]
) -> None:
    receivers = Receivers()
    AnswerDelivery().send([receivers.pending(name, tag) for tag, name in enumerate(names)])
    assert receivers.calls == calls


def test_answers_are_counted_by_type_and_code() -> None:
    delivery, receivers = AnswerDelivery(), Receivers()
    refused = ErrorCode.INVALID_REQUEST
    kinds = [(CREATE, ErrorCode.NONE), (CREATE, ErrorCode.NONE), (CREATE, refused),
             (DELETE, refused), (DELETE, refused), (CREATE, ErrorCode.NONE)]  # fmt: skip
    for _ in range(2):
        delivery.send([receivers.pending("a", 0, *each) for each in kinds])
    delivery.send([])
    assert delivery.take_counts() == {
        ("CreateTopic", ErrorCode.NONE): 6,
        ("CreateTopic", refused): 2,
        ("DeleteTopic", refused): 4,
    }
    assert delivery.take_counts() == {}


def test_a_message_of_commands_gets_its_answers_together() -> None:
    bench = Bench()
    receivers = Receivers()
    on_answers = receivers.on_answers["a"]
    commands: list[Command] = [set_config(5), UnregisterBroker(9), set_config(6)]
    bench.controller.submit_all(
        [
            PendingCommand(command, RequestContext(), on_answers, tag)
            for tag, command in enumerate(commands)
        ]
    )
    bench.flush()
    assert receivers.calls == []
    bench.log.settle()
    assert receivers.calls == [("a", [0, 1, 2])]
    counts = bench.controller.take_answer_counts()
    assert counts == {
        ("IncrementalAlterConfigs", ErrorCode.NONE): 2,
        ("UnregisterBroker", ErrorCode.BROKER_ID_NOT_REGISTERED): 1,
    }


@pytest.mark.parametrize("is_deposed", [True, False])
def test_what_cannot_wait_is_refused_together(*, is_deposed: bool) -> None:
    bench = Bench(queue_commands_max=2)
    if is_deposed:
        bench.log.depose()
    receivers = Receivers()
    on_answers = receivers.on_answers["a"]
    bench.controller.submit_all(
        [PendingCommand(CREATE, RequestContext(), on_answers, tag) for tag in range(4)]
    )
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_deposed else ErrorCode.RESOURCE_EXHAUSTED
    refused = [0, 1, 2, 3] if is_deposed else [2, 3]
    assert receivers.calls == [("a", refused)]
    assert bench.controller.take_answer_counts() == {("CreateTopic", code): len(refused)}


def test_a_receiver_of_single_answers_gets_each() -> None:
    found: list[Answer] = []
    receivers = Receivers()
    pending = [receivers.pending("a", tag) for tag in range(3)]
    each_answer(found.append)(pending)
    assert found == [each.answer for each in pending]


def test_a_refused_command_is_not_kept_until_its_answer_leaves() -> None:
    bench = Bench()
    name = "x" * 100_000
    expected = sys.getrefcount(name)
    receivers = Receivers()
    command = CreateTopic("t", configs=(("retention.ms", name),))
    bench.controller.submit_all(
        [PendingCommand(command, RequestContext(), receivers.on_answers["a"])]
    )
    del command
    assert sys.getrefcount(name) > expected
    bench.flush()
    assert receivers.calls == []
    assert sys.getrefcount(name) == expected
    bench.log.confirm_reads()
    assert receivers.calls == [("a", [0])]


def test_a_command_with_a_position_counts_as_the_command() -> None:
    command = WithPosition(CREATE, CommitPosition("group", 5))
    pending = PendingCommand(command, RequestContext(), Receivers().on_answers["a"])
    assert pending.kind is CreateTopic
