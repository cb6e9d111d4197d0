"""Whatever a peer sends, in whatever role it is received: refused or ignored without a trace.

Intact messages of every type are mutated by a seeded source and given to a copy of a node. No
exception may come out, nothing that must hold may break, and a message that is refused or
ignored leaves the state as it was, to the last bit.
"""

from __future__ import annotations

import pickle
import random
from dataclasses import fields, replace
from functools import cache
from typing import Any, get_args

import pytest

from quorum.core.contract.events import MessageIgnored, RequestRefused
from quorum.core.contract.output import Output
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message, ReceivedRequest, Request
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.node.raft_node import RaftNode
from quorum.core.node.routing import HANDLERS, PROOF_HANDLERS
from quorum.errors import ErrorCode
from simulation.explore.fingerprint import fingerprint
from simulation.harness.arrival import arrived, received
from tests.support.core_cluster import CLUSTER
from tests.support.core_situations import SITUATIONS, intact_messages
from tests.support.message_mutation import Mutator

KINDS: tuple[type[Message], ...] = get_args(Message)
MUTANTS = 25
"""Of every message type, in every situation."""
SEED = 20_260
MAY_LEAVE_A_TRACE = {
    ErrorCode.DIGEST_MISMATCH: "a divergence begins",
    ErrorCode.REPLICA_REGRESSED: "the replica is known from then on",
    ErrorCode.SNAPSHOT_NOT_FOUND: "it is a sign of life",
    ErrorCode.INVALID_VOTER_KEY: "a newer epoch is adopted before the address is looked at",
    ErrorCode.INELIGIBLE_REPLICA: "a disk may find itself disqualified by what it was asked",
}
"""Refusals of requests that are intact in themselves (docs/reference/handlers.md, "Handlers")."""


def digest_of(node: RaftNode) -> bytes:
    core = node._core
    core.out = Output()
    return fingerprint(core)


def _unpacked(packed: bytes) -> RaftNode:
    node: RaftNode = pickle.loads(packed)
    return node


@cache
def settled(situation: str) -> tuple[bytes, int, int]:
    """The pickled node without due timers, its clock, and one of its peers."""
    cluster, node_id = SITUATIONS[situation]()
    node = cluster[node_id]
    for _ in range(3):
        node.tick(cluster.now_ms)
    peer = 2 if node_id == 1 else 1
    return pickle.dumps(node, -1), cluster.now_ms, peer


def check(node: RaftNode, before: RaftNode, output: Output, message: Any, label: str) -> None:
    """What must hold after any message at all."""
    assert node.epoch >= before.epoch, label
    assert node.high_watermark >= before.high_watermark, label
    assert node.high_watermark <= node.log_end_offset, label
    assert node.log_start.offset >= before.log_start.offset, label
    if node.epoch == before.epoch and before.voted_id >= 0:
        assert node.voted_id == before.voted_id, label
    refused = [each for each in output.events if isinstance(each, RequestRefused)]
    ignored = [each for each in output.events if isinstance(each, MessageIgnored)]
    assert len(refused) <= 1, label
    if refused:
        assert len([*output.immediate, *output.after_persist]) >= 1, label
    tolerated = {*MAY_LEAVE_A_TRACE}
    if type(message) is FetchRequest:
        # A leader remembers observers of a later epoch (ADR 44).
        tolerated.add(ErrorCode.UNKNOWN_LEADER_EPOCH)
    is_strict = any(each.error not in tolerated for each in refused) or any(
        each.reason is IgnoreReason.NEVER_ASKED for each in ignored
    )
    if is_strict:
        assert digest_of(node) == digest_of(before), label
        assert not output.persist, label
        assert not output.progress, label


@pytest.mark.parametrize("situation", sorted(SITUATIONS))
def test_mutated_messages_in_every_role(situation: str) -> None:
    """Fuzz every handler; what is refused or ignored leaves no trace."""
    packed, now_ms, peer = settled(situation)
    rng = random.Random(f"{SEED} {situation}")
    mutator = Mutator(rng)
    before = _unpacked(packed)
    evaluated = 0
    for kind in KINDS:
        for number in range(MUTANTS):
            node = _unpacked(packed)
            intact = intact_messages(node, peer, rng)[kind]
            message = intact if number == 0 else mutator.mutate(intact)
            sender = rng.choice((peer, peer, peer, 3, -1, -2, 77, node.me.id))
            label = f"seed {SEED} {situation} {sender} {message!r}"[:2000]
            output = node.receive(now_ms, sender, arrived(message, is_proven=rng.random() < 0.7))
            check(node, before, output, message, label)
            evaluated += any(isinstance(e, RequestRefused | MessageIgnored) for e in output.events)
            for later in (0, 700, 5_000):
                node.tick(now_ms + later)
    assert evaluated > len(KINDS), "hardly anything was refused: the mutants are too tame"


REFUSED: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "another cluster": ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
    "a stale epoch": ({"epoch": 1}, ErrorCode.FENCED_LEADER_EPOCH),
}


@pytest.mark.parametrize("situation", ["leader", "follower", "candidate", "resigned", "unattached"])
@pytest.mark.parametrize("wrong", sorted(REFUSED))
def test_every_request_is_refused_by_name(situation: str, wrong: str) -> None:
    """The same mistake in every kind of request gets the same error and leaves no trace."""
    fields, error = REFUSED[wrong]
    packed, now_ms, peer = settled(situation)
    rng = random.Random(SEED)
    for kind, intact in intact_messages(_unpacked(packed), peer, rng).items():
        if not isinstance(intact, Request):
            continue
        node = _unpacked(packed)
        before = digest_of(node)
        values = dict(fields)
        if isinstance(intact, FetchRequest):
            values.setdefault("last_fetched_epoch", 0)
        if isinstance(intact, VoteRequest) and "epoch" in values:
            values["last"] = type(intact.last)(0, 0)
        output = node.receive(now_ms, peer, _with(intact, values))
        errors = [each.error for each in output.events if isinstance(each, RequestRefused)]
        if kind.__name__ == "ChainDigestRequest" and wrong == "a stale epoch":
            continue  # Asked of any replica in any epoch.
        if kind.__name__ == "BootstrapRequest" and wrong == "a stale epoch":
            continue  # Epoch 0 by nature.
        assert errors == [error], (kind, errors)
        assert digest_of(node) == before, kind


def _with(message: Any, values: dict[str, Any]) -> Any:
    return replace(message, **values)


@pytest.mark.parametrize("situation", sorted(SITUATIONS))
def test_answers_to_nothing_are_ignored(situation: str) -> None:
    """A response with a number that was never given out changes nothing, intact as it is."""
    packed, now_ms, peer = settled(situation)
    sounds = intact_messages(_unpacked(packed), peer, random.Random(SEED))
    for kind, intact in sounds.items():
        if isinstance(intact, Request):
            continue
        for request_id in (-1, 0, 12345):
            node = _unpacked(packed)
            before = digest_of(node)
            output = node.receive(now_ms, peer, _with(intact, {"request_id": request_id}))
            assert any(isinstance(each, MessageIgnored) for each in output.events), kind
            assert digest_of(node) == before, kind


MAY_BE_NEGATIVE = {"request_id", "high_watermark"}
"""Any number names a request; a high watermark of -1 or less is not known."""


@pytest.mark.parametrize("situation", sorted(SITUATIONS))
def test_a_negative_number_is_refused(situation: str) -> None:
    """Every number of every request, below what means "none": an error, and no trace."""
    packed, now_ms, peer = settled(situation)
    sounds = intact_messages(_unpacked(packed), peer, random.Random(SEED))
    for kind, intact in sounds.items():
        if not isinstance(intact, Request):
            continue
        for field in fields(intact):
            value = getattr(intact, field.name)
            if type(value) is not int or field.name in MAY_BE_NEGATIVE:
                continue
            node = _unpacked(packed)
            before = digest_of(node)
            output = node.receive(now_ms, peer, _with(intact, {field.name: -2}))
            errors = [each.error for each in output.events if isinstance(each, RequestRefused)]
            assert len(errors) == 1, (kind, field.name)
            if errors != [ErrorCode.SNAPSHOT_NOT_FOUND]:
                assert digest_of(node) == before, (kind, field.name)


def test_every_message_type_has_a_intact_example() -> None:
    packed, _, peer = settled("leader")
    node = _unpacked(packed)
    intact = intact_messages(node, peer, random.Random(1))
    assert set(intact) == set(KINDS)
    handled = [received(each) for each in intact.values()]
    inner = [each.request if isinstance(each, ReceivedRequest) else each for each in handled]
    assert {type(each) for each in inner} == {*HANDLERS, *PROOF_HANDLERS}
    assert intact_messages(node, peer, random.Random(1))[VoteRequest].cluster_id == CLUSTER  # type: ignore[union-attr]
