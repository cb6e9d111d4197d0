"""A producer of data, over the production session of sequence numbers (KIP-360).

Epoch and sequence of a record are fixed when it is first sent and never rewritten (360.6). A
producer whose state the partition has lost may only raise its epoch, and begin at 0 again.
"""

from __future__ import annotations

from quorate.client.producer_sessions import ProducerSession
from quorum.errors import CommandError, ErrorCode
from quorum.types import NodeId
from simulation.laboratory.laboratory import Laboratory
from statemachine.commands import InitProducerId
from statemachine.producers import SequenceClaim
from statemachine.sections.producer_state import Applied

_OWN_SESSION_ENDS = (ErrorCode.UNKNOWN_PRODUCER_ID,)
"""Errors after which a producer without a name goes on by itself, in its next epoch."""


class PartitionProducer:
    """A producer of one topic; with a ``name`` the controller fences its older processes."""

    def __init__(self, laboratory: Laboratory, topic: str, name: str | None = None) -> None:
        self._laboratory = laboratory
        self._topic = topic
        self.name = name
        answer = laboratory.controller.submit(InitProducerId(name))
        if answer.code is not ErrorCode.NONE:
            raise CommandError(answer.code, answer.message)
        self.session: ProducerSession[str] = ProducerSession(
            int(str(answer.result["producer_id"])), int(str(answer.result["producer_epoch"]))
        )

    def send(self, value: str, *, to: NodeId | None = None, is_lost: bool = False) -> Applied:
        """Send a record to the leader, or to ``to``; with ``is_lost`` its answer never arrives.

        Raises:
            CommandError: It was refused, or there is no leader.
        """
        sequence = self.session.admit(value)
        return self._send(value, sequence, to, is_lost=is_lost)

    def repeat(self, *, to: NodeId | None = None) -> Applied:
        """Send the oldest record without an answer again, under the same number.

        Raises:
            CommandError: As ``send``.
        """
        sequence = self.session.oldest_open
        return self._send(self.session.open[sequence], sequence, to, is_lost=False)

    def _send(self, value: str, sequence: int, to: NodeId | None, *, is_lost: bool) -> Applied:
        laboratory, session = self._laboratory, self.session
        leader = laboratory.state(self._topic).leader if to is None else to
        claim = SequenceClaim(
            session.producer_id, session.producer_epoch, sequence, session.oldest_open
        )
        try:
            replica = laboratory.append(self._topic, leader)
            applied = replica.log.append(value, replica.leader_epoch, claim)
        except CommandError as error:
            if error.code in _OWN_SESSION_ENDS and self.name is None:
                self._begin_next_epoch()
            raise
        replica.advance_high_watermark()
        if not is_lost:
            session.settle(sequence)
        return applied

    def _begin_next_epoch(self) -> None:
        """Raise the own epoch: records without an answer have an unknown outcome, and stay so."""
        session = self.session
        session.is_retired = True
        self.session = ProducerSession(session.producer_id, session.producer_epoch + 1)
