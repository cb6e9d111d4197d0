"""Assign producer ids: blocks for brokers, identities for metadata producers (KIP-360).

All ids come from one counter in the image, so none is assigned twice. A producer's identity is
a logged record, so that every leader recognises its retries (requirements 360.1 to 360.8).
"""

from __future__ import annotations

from dataclasses import replace

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import AllocateProducerIds, InitProducerId
from statemachine.fingerprint import owner_digest
from statemachine.known_producer import ProducerError, hidden_producer, known_producer
from statemachine.prepare.brokers import check_generation
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.view import View
from statemachine.producers import EPOCH_EXHAUSTED
from statemachine.records import (
    InitProducerRecord,
    MetadataRecord,
    ProducerIdsRecord,
    TransactionalIdRecord,
)
from statemachine.sections.producer_state import ProducerState
from statemachine.sections.producers import EPOCH_MAX

PRODUCER_ID_BLOCK_SIZE = 1_000
PRODUCER_ID_MAX = 2**63 - 1
TRANSACTIONAL_ID_LENGTH_MAX = 255
TRANSACTION_TIMEOUT_MAX_MS = 900_000
"""``transaction.max.timeout.ms``."""
NONE = -1

_EMPTY = 0
_COMPLETE_COMMIT = 4
_COMPLETE_ABORT = 5
_SETTLED = (_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT)


def prepare_allocate_producer_ids(
    view: View, command: AllocateProducerIds, context: EvaluationContext
) -> Prepared:
    """Return a block of ids for a broker. A block lost with its broker is never reused.

    Raises:
        CommandError: STALE_BROKER_EPOCH; UNKNOWN_SERVER_ERROR if the ids are used up.
    """
    del context
    check_generation(view, command.broker_id, command.broker_epoch)
    first = _next_ids(view, PRODUCER_ID_BLOCK_SIZE)
    record = ProducerIdsRecord(
        command.broker_id, command.broker_epoch, first + PRODUCER_ID_BLOCK_SIZE
    )
    return Prepared(
        [record], {"first_producer_id": first, "producer_id_count": PRODUCER_ID_BLOCK_SIZE}
    )


def _next_ids(view: View, count: int) -> int:
    first = view.producers.next_id
    if first > PRODUCER_ID_MAX - count:
        raise CommandError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"producer ids are used up: the next one is {first}"
        )
    return first


def prepare_init_producer_id(
    view: View, command: InitProducerId, context: EvaluationContext
) -> Prepared:
    """Return an identity whose sequences begin at 0, or the present one again after a lost reply.

    Raises:
        CommandError: INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, INVALID_PRODUCER_EPOCH
            if another process has taken over the identity, INVALID_PRODUCER_ID_MAPPING for a
            producer of another principal or transactional id, CONCURRENT_TRANSACTIONS while a
            transaction is completing, UNKNOWN_SERVER_ERROR if ids are used up.
    """
    _check_request(command)
    if command.transactional_id is None:
        return _init_anonymous(view, command, context)
    return _init_named(view, command, command.transactional_id, context)


def _check_request(command: InitProducerId) -> None:
    if (command.producer_id == NONE) != (command.producer_epoch == NONE):
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"producer id {command.producer_id} and epoch {command.producer_epoch} "
            "must be given together",
        )
    if command.producer_id < NONE or not NONE <= command.producer_epoch <= EPOCH_MAX:
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"there is no producer {command.producer_id} with epoch {command.producer_epoch}",
        )
    name = command.transactional_id
    if name is None:
        return
    if not 0 < len(name) <= TRANSACTIONAL_ID_LENGTH_MAX:
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"a transactional id of {len(name)} characters is not within 1 to "
            f"{TRANSACTIONAL_ID_LENGTH_MAX}",
        )
    if not 0 < command.timeout_ms <= TRANSACTION_TIMEOUT_MAX_MS:
        raise CommandError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"timeout {command.timeout_ms} ms is not within 1 to {TRANSACTION_TIMEOUT_MAX_MS}",
        )


def _init_anonymous(view: View, command: InitProducerId, context: EvaluationContext) -> Prepared:
    producer_id = command.producer_id
    state = None if producer_id == NONE else view.producers.states.get(producer_id)
    if state is None:
        return _hand_out(_next_ids(view, 1), 0)
    name = view.producers.names.get(producer_id)
    if name is not None or (state.owner and state.owner != owner_digest(context.principal)):
        raise ProducerError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"producer {producer_id} belongs to "
            + ("another principal" if name is None else f"transactional id {name!r}"),
            hidden_producer(view.producers, producer_id),
        )
    if state.successor_id != NONE:
        return _init_replaced(view, command, state)
    if command.producer_epoch == state.epoch:
        if state.epoch >= EPOCH_EXHAUSTED:
            return _hand_out(_next_ids(view, 1), 0, replaced=producer_id)
        return _hand_out(producer_id, state.epoch + 1)
    if command.producer_epoch == state.epoch - 1 and state.last_sequence == NONE:
        # The reply to the bump was lost: the new epoch has no writes yet.
        return _repeat(producer_id, state.epoch)
    raise _is_fenced(view, command, producer_id, state.epoch)


def _init_replaced(view: View, command: InitProducerId, old: ProducerState) -> Prepared:
    """Answer a producer whose id was replaced after its last epoch (360.3)."""
    successor = view.producers.states.get(old.successor_id)
    if successor is None:
        return _hand_out(_next_ids(view, 1), 0)
    is_unused = successor.epoch == 0 and successor.last_sequence == NONE
    if command.producer_epoch == EPOCH_EXHAUSTED and is_unused:
        # The reply with the new id was lost.
        return _repeat(old.successor_id, 0)
    raise _is_fenced(view, command, old.successor_id, successor.epoch)


def _init_named(
    view: View, command: InitProducerId, name: str, context: EvaluationContext
) -> Prepared:
    known = view.producers.transactional_ids.get(name)
    fresh = TransactionalIdRecord(
        transactional_id=name,
        timeout_ms=command.timeout_ms,
        status=_EMPTY,
        last_update_ms=context.wall_ms,
    )
    if known is None:
        # Keep the client's pair: if the reply is lost, the client sends the same pair again.
        fresh.previous_producer_id = command.producer_id
        fresh.last_producer_epoch = command.producer_epoch
        return _store(fresh, _next_ids(view, 1), 0)
    epoch = known.producer_epoch
    expects = command.producer_id != NONE
    is_current = command.producer_id == known.producer_id
    # In epoch 0 the last pair has the previous id; the client resends it after a lost reply.
    is_last = command.producer_epoch == known.last_producer_epoch and command.producer_id == (
        known.producer_id if epoch else known.previous_producer_id
    )
    if expects and not (is_current or is_last):
        raise _is_fenced(view, command, known.producer_id, known.producer_epoch)
    if known.status not in _SETTLED:
        raise CommandError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"{name!r} has a transaction in state {known.status}; retry",
        )
    if expects and is_last:
        return _repeat(known.producer_id, epoch)
    if expects and command.producer_epoch != epoch:
        raise _is_fenced(view, command, known.producer_id, epoch)
    fresh.previous_producer_id = known.previous_producer_id
    fresh.last_producer_epoch = epoch if expects else NONE
    state = view.producers.states.get(known.producer_id)
    # If the producer's state has expired, its id must not be used again.
    newest = EPOCH_EXHAUSTED if state is None else _newest_epoch(known, state)
    if newest >= EPOCH_EXHAUSTED:
        fresh.previous_producer_id = known.producer_id
        replaced = NONE if state is None else known.producer_id
        return _store(fresh, _next_ids(view, 1), 0, replaced=replaced)
    return _store(fresh, known.producer_id, newest + 1)


def _newest_epoch(known: TransactionalIdRecord, state: ProducerState) -> int:
    """Return a named producer's newest epoch; its producer state may be ahead of its name."""
    return max(known.producer_epoch, state.epoch)


def _store(
    fresh: TransactionalIdRecord, producer_id: int, epoch: int, *, replaced: int = NONE
) -> Prepared:
    record = replace(fresh, producer_id=producer_id, producer_epoch=epoch)
    prepared = _hand_out(producer_id, epoch, replaced=replaced)
    prepared.records.append(record)
    return prepared


def _hand_out(producer_id: int, epoch: int, *, replaced: int = NONE) -> Prepared:
    """Assign a producer id and epoch; ``replaced`` is the id whose epochs are used up."""
    records: list[MetadataRecord] = [InitProducerRecord(producer_id, epoch, replaced)]
    return Prepared(records, {"producer_id": producer_id, "producer_epoch": epoch})


def _repeat(producer_id: int, epoch: int) -> Prepared:
    return Prepared([], {"producer_id": producer_id, "producer_epoch": epoch})


def _is_fenced(view: View, command: InitProducerId, producer_id: int, epoch: int) -> ProducerError:
    """Return the refusal of a former process, whose identity is now that producer id and epoch."""
    name = command.transactional_id
    known = known_producer(view.producers, producer_id)
    return ProducerError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ("" if name is None else f"writer {name!r}: ")
        + f"producer {command.producer_id} with epoch {command.producer_epoch} was replaced by "
        f"producer {producer_id} with epoch {epoch}",
        known._replace(producer_id=command.producer_id),
    )
