"""Import another cluster's metadata: check the order, and refuse other commands meanwhile.

Another controller evaluated the records, so they are not evaluated one by one. The importer has
replayed all of them before it sends the first, and replay is strict. Only the order is evaluated:
an import begins in an empty cluster, continues exactly where it stopped, and ends once.
"""

from __future__ import annotations

from quorum.errors import CommandError, ErrorCode, RecordCodecError, UnknownRecordError
from statemachine.codec import decode_record
from statemachine.commands import ImportBatch
from statemachine.delta import ImageDelta
from statemachine.import_state import NO_CHECKPOINT, ImportState, SourcePosition
from statemachine.imports import HEADER_SOURCE_NEXT, HEADER_SOURCE_OFFSET, is_blank
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.view import View
from statemachine.records import (
    METADATA_VERSION,
    OWN_API_KEY_MIN,
    AbortTransactionRecord,
    BeginImportRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    ImportStateRecord,
    MetadataRecord,
    RegisterBrokerRecord,
)

CLUSTER_ID_LENGTH_MAX = 255
"""Characters of a source's cluster id."""
OFFSET_MAX = 2**63 - 1
_MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


def refuse_during_import(state: ImportState) -> None:
    """Refuse other commands during an import: its result must equal its source.

    Raises:
        CommandError: POLICY_VIOLATION, unless the import is finished.
    """
    if not state.is_finished:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"the metadata of cluster {state.cluster_id!r} is being imported and has reached "
            f"{state.position.text()}; other writes are refused until `quorate import` is done",
        )


def prepare_import_batch(view: View, command: ImportBatch, context: EvaluationContext) -> Prepared:
    """Return the records of a source range; none for a range that was imported before.

    Raises:
        CommandError: INVALID_REQUEST for a malformed command, and for record types that an
            import does not copy; POLICY_VIOLATION if the cluster is not empty, or another source
            was or is imported; OUT_OF_ORDER_SEQUENCE_NUMBER for a range that does not begin at
            the import's position.
    """
    _check_form(command)
    records: list[MetadataRecord] = []
    state = view.source
    if state is None:
        _check_first(command)
        _check_blank(view)
        if not context.uses_native_codec:
            records += _voided_levels(view)
        records.append(
            BeginImportRecord(
                command.source_cluster_id,
                command.checkpoint_offset,
                not command.begin.is_in_log,
                command.begin.offset,
            )
        )
    elif _was_done(state, command):
        return Prepared([])
    copied = [_decode(value, number) for number, value in enumerate(command.records)]
    records += copied
    if command.is_last or (not copied and command.end != command.begin):
        records.append(_state_at(view, command, copied))
    headers = (
        (HEADER_SOURCE_OFFSET, command.begin.text().encode()),
        (HEADER_SOURCE_NEXT, command.end.text().encode()),
    )
    return Prepared(records, headers=headers, is_foreign=True)


def _voided_levels(view: View) -> list[MetadataRecord]:
    """Return what ``BeginImportRecord`` implies, as records that Kafka's readers know.

    They refuse a log without a metadata.version; the source's own level replaces it.
    """
    return [
        FeatureLevelRecord(name, 0)
        for name in sorted(view.features.levels)
        if name != METADATA_VERSION
    ]


def _check_form(command: ImportBatch) -> None:
    problem = None
    if not 0 < len(command.source_cluster_id) <= CLUSTER_ID_LENGTH_MAX:
        problem = f"the source's cluster id is not of 1 to {CLUSTER_ID_LENGTH_MAX} characters"
    elif not _is_offset(command.begin) or not _is_offset(command.end):
        problem = "a position in the source is negative"
    elif command.end < command.begin:
        problem = f"the range ends at {command.end.text()}, before {command.begin.text()}"
    elif command.checkpoint_offset < NO_CHECKPOINT:
        problem = f"there is no checkpoint {command.checkpoint_offset}"
    elif command.checkpoint_offset == NO_CHECKPOINT and not command.begin.is_in_log:
        problem = "the range lies in a checkpoint, but none is named"
    if problem is not None:
        raise CommandError(ErrorCode.INVALID_REQUEST, problem)


def _is_offset(position: SourcePosition) -> bool:
    return 0 <= position.offset <= OFFSET_MAX


def _check_first(command: ImportBatch) -> None:
    """Check the first command: it is empty, because a later one may have overtaken it."""
    start = SourcePosition(command.checkpoint_offset == NO_CHECKPOINT, 0)
    if command.begin != start or command.end != start or command.records or command.is_last:
        raise CommandError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"no import was begun; begin one with an empty range at {start.text()}",
        )


def _check_blank(view: View) -> None:
    image = view.view() if isinstance(view, ImageDelta) else view
    if is_blank(image):
        return
    held = {
        "brokers": len(image.brokers),
        "topics": len(image.topics.ids),
        "configured resources": len(image.configs.resources),
        "producer ids": image.producers.next_id,
    }
    listed = ", ".join(f"{count} {name}" for name, count in held.items() if count)
    raise CommandError(
        ErrorCode.POLICY_VIOLATION,
        f"the cluster is not empty: {listed or 'it has been written to'}; import into a newly "
        "formatted one",
    )


def _was_done(state: ImportState, command: ImportBatch) -> bool:
    """Whether the range was imported before; refuse any range but that and the next one."""
    if state.cluster_id != command.source_cluster_id or (
        state.checkpoint_offset != command.checkpoint_offset
    ):
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"this cluster's metadata comes from cluster {state.cluster_id!r}, "
            f"{_start_text(state.checkpoint_offset)}; the command imports "
            f"{command.source_cluster_id!r}, {_start_text(command.checkpoint_offset)}",
        )
    ends_it = command.is_last and not state.is_finished and command.end == state.position
    if command.end <= state.position and not ends_it:
        return True
    if state.is_finished:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"the import of cluster {state.cluster_id!r} ended at {state.position.text()}; "
            f"{command.begin.text()} and what follows cannot be added",
        )
    if command.begin != state.position:
        raise CommandError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"the import is at {state.position.text()}, not at {command.begin.text()}",
        )
    return False


def _start_text(checkpoint_offset: int) -> str:
    if checkpoint_offset == NO_CHECKPOINT:
        return "from the beginning of its log"
    return f"from its checkpoint at {checkpoint_offset}"


def _decode(value: bytes, number: int) -> MetadataRecord:
    try:
        record = decode_record(value)
    except (RecordCodecError, UnknownRecordError) as error:
        raise CommandError(ErrorCode.INVALID_REQUEST, f"record {number}: {error}") from error
    if record.API_KEY >= OWN_API_KEY_MIN or isinstance(record, _MARKERS):
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"record {number}: a {type(record).__name__} is not copied by an import",
        )
    return record


def _state_at(view: View, command: ImportBatch, copied: list[MetadataRecord]) -> ImportStateRecord:
    epochs = [r.broker_epoch for r in copied if isinstance(r, RegisterBrokerRecord)]
    highest = max(view.cluster.highest_broker_epoch, *epochs, -1)
    return ImportStateRecord(
        command.source_cluster_id,
        command.checkpoint_offset,
        not command.end.is_in_log,
        command.end.offset,
        command.is_last,
        highest if command.is_last else -1,
    )
