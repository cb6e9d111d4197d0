"""One group: the commands that one append carries, evaluated in order on what comes before them.

A group is formed in one go, right before it is proposed, so the offsets its commands are evaluated
with are the offsets they get. Each command becomes one atomic batch, or an answer without a
batch: a refusal, a no-op, a dry run, the repeat of a first answer.

Invariant: the image after the group is what every replica will have after replaying its batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgpack

from quorate.controller.claims import (
    NOTHING_TAKEN,
    applied_before,
    claim_of,
    first_answer,
    taking_of,
)
from quorate.controller.origin_headers import RecordHeaders, command_headers, origin_headers
from quorate.controller.proposed_group import Group
from quorate.controller.requests import Answer, PendingCommand, RequestContext
from quorate.controller.unused_numbers import UnusedNumbers
from quorum.batch import BatchHeader, encode_with_header
from quorum.errors import CommandError, ErrorCode, QuorateError, ReplayError
from statemachine.codec import encode_kafka
from statemachine.commands import Command, ImportBatch
from statemachine.delta import ImageDelta
from statemachine.encoded_runs import encode_records
from statemachine.fingerprint import command_fingerprint
from statemachine.known_producer import ProducerError
from statemachine.prepare import EVALUATORS, EvaluationContext, Prepared
from statemachine.prepare.imports import refuse_during_import
from statemachine.producers import (
    ANSWER_REFUSED,
    Duplicate,
    Fresh,
    check_sequence,
)
from statemachine.records import (
    MetadataRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    record_version,
)
from statemachine.sessions import BrokerGeneration

REFUSAL_MESSAGE_MAX = 500
"""Characters of a refusal's message that are kept with its number, for late copies."""

BeginDeparture: TypeAlias = Callable[
    [ImageDelta, list[MetadataRecord], RequestContext], BrokerGeneration | None
]
"""Returns the broker that must leave its partitions before records may be written, if any."""

_NO_HEADERS: RecordHeaders = ()


@dataclass(slots=True)
class GroupFormer:
    """Evaluates commands one after the other and collects what they come to.

    ``evaluate`` is the leader's hot path; ``add`` is for what the controller itself has to say.
    """

    begin_delta: Callable[[], ImageDelta]
    """Makes the state that the group is evaluated on."""
    evaluation: EvaluationContext
    epoch: int
    timestamp_ms: int
    on_fault: Callable[[str], None]
    """Told when evaluated records could not be replayed: a defect of ours, kept out of the log."""
    producer_window: int
    batch_bytes_max: int
    unused: UnusedNumbers
    begin_departure: BeginDeparture
    answers: list[PendingCommand] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)
    batch_headers: list[BatchHeader] = field(default_factory=list)
    size_bytes: int = 0
    needs_proof: bool = False
    """Whether an answer without a batch of its own claims something about the present, which
    a deposed leader must not do: it leaves only after leadership was confirmed."""
    _fingerprint: bytes = b""
    """Of the command that is evaluated; empty where it has no number."""
    _contents: list[tuple[Sequence[MetadataRecord], RecordHeaders]] = field(default_factory=list)
    """Records and headers of each batch, to build the uncommitted image again without a later,
    faulty one."""
    delta: ImageDelta = field(init=False)
    base_offset: int = field(init=False)

    def __post_init__(self) -> None:
        self.delta = self.begin_delta()
        self.base_offset = self.delta.end_offset

    def evaluate(
        self, pending: PendingCommand, *, may_wait: bool = True
    ) -> BrokerGeneration | None:
        """Evaluate one command; its answer is kept until the group is committed.

        With ``may_wait`` it may have to wait until a broker has left its partitions. Then that
        broker is returned, and the command was not evaluated.
        """
        delta, command, context = self.delta, pending.command, pending.context
        evaluation, base = self.evaluation, delta.end_offset
        evaluation.next_offset, evaluation.principal = base, context.principal
        taking, evaluated, known = NOTHING_TAKEN, None, None
        self._fingerprint = b""
        try:
            if context.producer_id >= 0:
                self._fingerprint = fingerprint = command_fingerprint(command)
                claim = claim_of(context, fingerprint)
                by_number = check_sequence(
                    delta, claim, window=self.producer_window, unused=self.unused.of(claim)
                )
                if type(by_number) is Fresh:
                    evaluated = claim
                known = applied_before(delta, claim, by_number, command, context.request_id)
                if known is None:
                    taking = taking_of(delta, command, context)
            if known is not None:
                if evaluated is not None and context.is_ordered:
                    self._take_number(known, context)
                end = self.delta.end_offset
                pending.answer = first_answer(known)
                pending.is_repeat = True
                pending.settled_at = end if end > base else -1
            else:
                result = self._execute(
                    command,
                    context,
                    takes_number=taking.nothing_to_change,
                    may_wait=may_wait,
                )
                pending.answer = Answer(
                    ErrorCode.NONE, "", self.delta.end_offset, self.epoch, result
                )
        except _MustWaitError as wait:
            return wait.generation
        except CommandError as error:
            pending.answer = self._refuse(error, context, is_fence=taking.refusal)
        if evaluated is not None and self.delta.end_offset == base:
            self.unused.add(evaluated)
        pending.drop_content()
        self.answers.append(pending)
        return None

    def _take_number(self, known: Duplicate, context: RequestContext) -> None:
        """Let a repeated request take its number: an ordered producer's next one must follow it."""
        if self.delta.source is not None:
            refuse_during_import(self.delta.source)
        answer = known.first.answer
        result = {} if answer is None else msgpack.unpackb(answer)
        self._append(Prepared([NoOpRecord()], result=result), context)

    def _execute(
        self, command: Command, context: RequestContext, *, takes_number: bool, may_wait: bool
    ) -> dict[str, object]:
        """Evaluate a command and append its records; return its result.

        Raises:
            CommandError: It is refused; nothing was appended.
            _MustWaitError: A broker must leave its partitions first; nothing has changed.
        """
        delta, evaluation = self.delta, self.evaluation
        if delta.source is not None and type(command) is not ImportBatch:
            refuse_during_import(delta.source)
        evaluate = EVALUATORS.get(type(command))
        if evaluate is None:
            raise CommandError(
                ErrorCode.INVALID_REQUEST, f"unknown command {type(command).__name__}"
            )
        if context.access is not None:
            context.access.check_command(delta, command)
        prepared = evaluate(delta, command, evaluation)
        if may_wait and prepared.records and not command.dry_run:
            leaving = self.begin_departure(delta, prepared.records, context)
            if leaving is not None:
                raise _MustWaitError(leaving)
        if prepared.session is not None:
            if not command.dry_run:
                evaluation.sessions.update(prepared.session, evaluation.now_ms)
        elif not prepared.records:
            self.needs_proof = self.needs_proof or not command.dry_run
        if not command.dry_run:
            if prepared.records:
                self._append(prepared, context)
            elif takes_number:
                self._append(Prepared([NoOpRecord()], result=prepared.result), context)
        return prepared.result

    def _refuse(self, error: CommandError, context: RequestContext, *, is_fence: bool) -> Answer:
        """The answer to a refused command.

        An earlier copy of a repeated one may come late, here or to a later leader, when nothing
        speaks against the command any more. So its refusal takes the number, in a batch that
        changes nothing else. Where nothing may be written, the outcome stays unknown.
        """
        if is_fence:
            message = error.message[:REFUSAL_MESSAGE_MAX]
            refusal = Prepared([NoOpRecord()], result={ANSWER_REFUSED: [int(error.code), message]})
            try:
                if self.delta.source is not None:
                    refuse_during_import(self.delta.source)
                self._append(refusal, context)
            except CommandError as obstacle:
                return Answer(
                    ErrorCode.OUTCOME_UNKNOWN,
                    f"{error.message}; a copy sent earlier may still be evaluated: "
                    f"{obstacle.message}",
                    epoch=self.epoch,
                )
        else:
            self.needs_proof = True
        known = error.known if isinstance(error, ProducerError) else None
        return Answer(
            error.code, error.message, self.delta.end_offset, self.epoch, known_producer=known
        )

    def add(self, records: list[MetadataRecord], context: RequestContext | None = None) -> bool:
        """One atomic batch of the controller's own. False: it does not replay; left out.

        ``context``: the request that made it necessary; the batch takes no number of it.
        """
        headers = _NO_HEADERS if context is None else origin_headers(context)
        values, record_headers = self._encode_all(records, headers)
        batch, place = encode_with_header(
            values,
            base_offset=self.delta.end_offset,
            epoch=self.epoch,
            timestamp=self.timestamp_ms,
            headers=record_headers,
            position=self.size_bytes,
        )
        try:
            self.delta.replay_batch(place, records, headers)
        except ReplayError as error:
            self._rebuild()
            self.on_fault(f"the controller's own records do not replay: {error}")
            return False
        self._keep(batch, place, records, headers)
        return True

    def finish(self, *, must_replay: bool = False) -> Group:
        """The group as it is proposed. The former is used up."""
        delta = self.delta
        return Group(
            self.base_offset,
            delta.end_offset,
            delta,
            delta.finish(),
            self.answers,
            must_replay=must_replay,
        )

    def _append(self, prepared: Prepared, context: RequestContext) -> None:
        records = prepared.records
        delta = self.delta
        base = delta.end_offset
        headers = prepared.headers + command_headers(context, prepared.result, self._fingerprint)
        try:
            values, record_headers = self._encode_all(records, headers)
            batch, place = encode_with_header(
                values,
                base_offset=base,
                epoch=self.epoch,
                timestamp=self.timestamp_ms,
                producer_id=context.producer_id,
                producer_epoch=context.producer_epoch,
                base_sequence=context.sequence,
                headers=record_headers,
                position=self.size_bytes,
            )
        except QuorateError as refusal:
            raise CommandError(
                ErrorCode.INVALID_REQUEST, f"the command cannot be written as records: {refusal}"
            ) from refusal
        if len(batch) > self.batch_bytes_max:
            raise CommandError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the batch would have {len(batch)} bytes, more than {self.batch_bytes_max}",
            )
        try:
            delta.replay_batch(place, records, headers)
        except ReplayError as error:
            self._rebuild()
            code = ErrorCode.INVALID_REQUEST
            if not prepared.is_foreign:
                code = ErrorCode.UNKNOWN_SERVER_ERROR
                self.on_fault(f"evaluated records do not replay: {error}")
            raise CommandError(code, f"the command contradicts the metadata: {error}") from error
        self._keep(batch, place, records, headers)
        for record in records:
            if type(record) is RegisterBrokerRecord:
                self.evaluation.sessions.note_registration(
                    record.broker_id, record.broker_epoch, base
                )

    def _encode_all(
        self, records: Sequence[MetadataRecord], headers: RecordHeaders
    ) -> tuple[list[bytes], RecordHeaders]:
        """The values of a batch and its record headers, which the kafka codec has in a value."""
        if self.evaluation.uses_native_codec:
            return encode_records(records), headers
        level = self.delta.features.metadata_version
        values = [
            encode_kafka(record, record_version(record, level), _NO_HEADERS if index else headers)
            for index, record in enumerate(records)
        ]
        return values, _NO_HEADERS

    def _keep(
        self,
        batch: bytes,
        place: BatchHeader,
        records: Sequence[MetadataRecord],
        headers: RecordHeaders,
    ) -> None:
        self.batches.append(batch)
        self.batch_headers.append(place)
        self.size_bytes += len(batch)
        self._contents.append((records, headers))

    def _rebuild(self) -> None:
        """A delta that failed half-way is spoiled: replay the good batches into a new one."""
        delta = self.begin_delta()
        for place, (records, headers) in zip(self.batch_headers, self._contents, strict=True):
            delta.replay_batch(place, records, headers)
        self.delta = delta


class _MustWaitError(Exception):
    """A broker must leave its partitions before the command may be carried out."""

    def __init__(self, generation: BrokerGeneration) -> None:
        super().__init__(generation)
        self.generation = generation
