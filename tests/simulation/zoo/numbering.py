"""Broken replicas that mix up writers, their numbers and their epochs."""

from __future__ import annotations

from collections.abc import Container

from quorate.controller import group
from quorate.controller.unused_numbers import UnusedNumbers
from statemachine import producers, replay
from statemachine.prepare import producer_ids
from statemachine.producers import SequenceClaim
from tests.simulation.zoo.bug import Bug, Patch


def repeats_known_by_their_number(patch: Patch) -> None:
    """Any command with the number of an applied one counts as a repeat of it."""
    patch.setattr(group, "command_fingerprint", lambda command: b"")


def producers_of_everybody(patch: Patch) -> None:
    """Any principal may use a producer whose id it knows."""
    patch.setattr(replay, "owner_digest", lambda principal: b"")


def gaps_accepted(patch: Patch) -> None:
    """A command is written although older ones of its producer are still open."""

    def everything(numbers: UnusedNumbers, claim: SequenceClaim) -> Container[int]:
        return range(claim.sequence)

    patch.setattr(UnusedNumbers, "of", everything)


def named_epochs_raised_by_anybody(patch: Patch) -> None:
    """A write may raise a named producer's epoch without InitProducerId."""
    patch.setattr(producers, "_check_raised_epoch", lambda view, claim: None)
    patch.setattr(producer_ids, "_newest_epoch", lambda known, state: known.producer_epoch)


BUGS = (
    Bug(
        "repeats-known-by-their-number",
        repeats_known_by_their_number,
        # A client that gets another command's answer does not find its fields in it.
        ("own-content", "no-crash"),
        "found from outside: a stranger's write under the next number",
    ),
    Bug(
        "producers-of-everybody",
        producers_of_everybody,
        ("client-served",),
        "found from outside: a stranger's write under the next number",
    ),
    Bug(
        "gaps-accepted",
        gaps_accepted,
        ("evaluated-in-order",),
        "found from outside: numbers 0, 1, 5; KIP-98",
    ),
    Bug(
        "named-epochs-raised-by-anybody",
        named_epochs_raised_by_anybody,
        ("client-served", "no-crash"),
        "found from outside: a named producer refused until it expires",
    ),
)
