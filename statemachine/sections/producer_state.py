"""State of one producer: what is kept of its commands, and its record in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quorum.errors import ReplayError
from statemachine.records import AppliedSequence, ProducerStateRecord

NO_SUCCESSOR = -1


@dataclass(slots=True, init=False)
class Applied:
    """The first answer to one applied command; fields as in ``AppliedSequence``. Never changed."""

    sequence: int
    offset: int
    epoch: int
    answer: bytes | None
    fingerprint: bytes
    """Fingerprint of the command; empty if unknown."""

    # Written out, because mypyc would leave a generated one to the interpreter (ADR 64).
    def __init__(
        self,
        sequence: int,
        offset: int,
        epoch: int,
        answer: bytes | None = None,
        fingerprint: bytes = b"",
    ) -> None:
        self.sequence = sequence
        self.offset = offset
        self.epoch = epoch
        self.answer = answer
        self.fingerprint = fingerprint


class ProducerState(NamedTuple):
    """State of one producer."""

    epoch: int = 0
    last_sequence: int = -1
    """Highest applied sequence, -1 before the first."""
    oldest_open: int = 0
    """The client has received the answers of all lower sequences."""
    last_timestamp_ms: int = -1
    """Append time of its last batch or of its creation; decides its expiry (360.5)."""
    applied: tuple[Applied, ...] = ()
    owner: bytes = b""
    """Digest of the principal that requested this id and epoch; empty if unknown."""
    successor_id: int = NO_SUCCESSOR
    """The id that replaced this one after its last epoch; -1 for none (360.3)."""

    def answer_to(self, sequence: int) -> Applied | None:
        """Return the first answer to that sequence if it was applied and is still kept."""
        return next((entry for entry in self.applied if entry.sequence == sequence), None)


def inserted(producer_id: int, kept: tuple[Applied, ...], applied: Applied) -> tuple[Applied, ...]:
    """Return ``kept`` with a sequence inserted that a higher one had overtaken.

    Raises:
        ReplayError: It was applied already.
    """
    sequence = applied.sequence
    if any(entry.sequence == sequence for entry in kept):
        raise ReplayError(f"producer {producer_id}: sequence {sequence} was applied already")
    return tuple(sorted((*kept, applied), key=lambda entry: entry.sequence))


def record_of(producer_id: int, state: ProducerState) -> ProducerStateRecord:
    """Return the checkpoint record of a producer; the reverse of ``replay_state``."""
    prints = tuple([entry.fingerprint for entry in state.applied])
    return ProducerStateRecord(
        producer_id,
        state.epoch,
        state.last_sequence,
        state.oldest_open,
        state.last_timestamp_ms,
        tuple(
            AppliedSequence(entry.sequence, entry.offset, entry.epoch, entry.answer)
            for entry in state.applied
        ),
        state.owner,
        prints if any(prints) else (),
        state.successor_id,
    )
