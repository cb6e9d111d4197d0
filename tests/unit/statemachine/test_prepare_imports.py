"""Evaluating an import: where it may begin, what follows, what was done before, what is refused."""

from __future__ import annotations

import pytest

from quorum.errors import CommandError, ErrorCode
from statemachine.codec import encode_kafka, encode_record
from statemachine.commands import ImportBatch
from statemachine.import_state import ImportState, SourcePosition
from statemachine.prepare import prepare
from statemachine.prepare.imports import refuse_during_import
from statemachine.records import (
    BeginImportRecord,
    BeginTransactionRecord,
    FeatureLevelRecord,
    ImportStateRecord,
    InitProducerRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.image_builder import evaluation, replayed, small_cluster

LEVEL = FeatureLevelRecord("metadata.version", 19)
TOPIC = TopicRecord("t", b"t" * 16)
BLANK = replayed(LEVEL)


def in_log(offset):
    return SourcePosition(is_in_log=True, offset=offset)


def in_checkpoint(offset):
    return SourcePosition(is_in_log=False, offset=offset)


def step(begin, end, *records, **fields):
    values = tuple(encode_kafka(record) for record in records)
    return ImportBatch(
        fields.pop("source", "source"),
        begin if isinstance(begin, SourcePosition) else in_log(begin),
        end if isinstance(end, SourcePosition) else in_log(end),
        values,
        **fields,
    )


def at(offset, *, is_finished=False, checkpoint=-1):
    """Return an image with an import at this position."""
    position = offset if isinstance(offset, SourcePosition) else in_log(offset)
    return replayed(
        ImportStateRecord(
            "source", checkpoint, not position.is_in_log, position.offset, is_finished
        )
    )


def refusal(view, command, **context):
    with pytest.raises(CommandError) as caught:
        prepare(view, command, evaluation(**context))
    return caught.value


def test_the_first_step_begins_the_import():
    prepared = prepare(BLANK, step(0, 0), evaluation())
    assert prepared.records == [BeginImportRecord("source", -1, False, 0)]
    start = in_checkpoint(0)
    prepared = prepare(BLANK, step(start, start, checkpoint_offset=7), evaluation())
    assert prepared.records == [BeginImportRecord("source", 7, True, 0)]


@pytest.mark.parametrize(
    "command",
    [
        step(0, 3, TOPIC),
        step(0, 0, TOPIC),
        step(3, 3),
        step(0, 0, is_last=True),
        step(0, 0, checkpoint_offset=7),
    ],
)
def test_only_an_empty_range_at_the_beginning_begins_one(command):
    """Anything else has overtaken the first step, or lost it."""
    assert refusal(BLANK, command).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    "image", [small_cluster(), replayed(InitProducerRecord(0, 0)), replayed(TOPIC)]
)
def test_a_cluster_that_is_not_empty_is_refused(image):
    error = refusal(image, step(0, 0))
    assert error.code is ErrorCode.POLICY_VIOLATION
    assert "not empty" in error.message


def test_the_next_range_is_copied_as_it_is_with_its_place_in_headers():
    prepared = prepare(at(3), step(3, 9, TOPIC, LEVEL), evaluation())
    assert prepared.records == [TOPIC, LEVEL]
    assert dict(prepared.headers) == {"source-offset": b"3", "source-next": b"9"}


def test_the_checkpoints_last_range_leads_into_the_log():
    view = at(in_checkpoint(4), checkpoint=100)
    command = step(in_checkpoint(4), 100, TOPIC, checkpoint_offset=100)
    prepared = prepare(view, command, evaluation())
    assert dict(prepared.headers) == {"source-offset": b"checkpoint:4", "source-next": b"100"}


@pytest.mark.parametrize("command", [step(0, 3, TOPIC), step(2, 5, TOPIC), step(0, 0), step(5, 5)])
def test_what_was_copied_before_changes_nothing(command):
    assert prepare(at(5), command, evaluation()).records == []


@pytest.mark.parametrize("command", [step(6, 9, TOPIC), step(4, 9, TOPIC), step(9, 9)])
def test_gaps_and_overlaps_are_refused(command):
    assert refusal(at(5), command).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_range_without_records_still_moves_the_position():
    prepared = prepare(at(5), step(5, 8), evaluation())
    assert prepared.records == [ImportStateRecord("source", -1, False, 8)]


def test_the_last_step_ends_it_with_the_highest_broker_epoch():
    view = replayed(
        RegisterBrokerRecord(1, broker_epoch=40), ImportStateRecord("source", -1, False, 5)
    )
    prepared = prepare(view, step(5, 5, is_last=True), evaluation())
    assert prepared.records == [ImportStateRecord("source", -1, False, 5, True, 40)]
    command = step(5, 7, RegisterBrokerRecord(2, broker_epoch=44), is_last=True)
    assert prepare(view, command, evaluation()).records[-1] == ImportStateRecord(
        "source", -1, False, 7, True, 44
    )


def test_the_end_is_repeated_without_effect_and_nothing_follows_it():
    done = at(5, is_finished=True)
    assert prepare(done, step(5, 5, is_last=True), evaluation()).records == []
    assert refusal(done, step(5, 6, TOPIC)).code is ErrorCode.POLICY_VIOLATION


def test_another_source_is_refused():
    error = refusal(at(5), step(5, 6, TOPIC, source="other"))
    assert error.code is ErrorCode.POLICY_VIOLATION
    assert "'source'" in error.message
    assert refusal(at(5), step(5, 6, checkpoint_offset=3)).code is ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    "command",
    [
        step(5, 6, source=""),
        step(5, 6, source="x" * 256),
        step(5, 4),
        step(in_log(-1), 6),
        step(5, in_log(2**63)),
        step(in_checkpoint(0), 6),
        step(5, 6, checkpoint_offset=-2),
        step(5, 6, BeginTransactionRecord("x")),
        ImportBatch("source", in_log(5), in_log(6), (b"\x01\x7f\x00",)),
        ImportBatch("source", in_log(5), in_log(6), (b"",)),
        ImportBatch("source", in_log(5), in_log(6), (encode_record(InitProducerRecord(1, 0)),)),
    ],
)
def test_malformed_commands_and_foreign_records_are_refused(command):
    assert refusal(at(5), command).code is ErrorCode.INVALID_REQUEST


def test_a_log_for_kafkas_readers_states_what_the_beginning_of_an_import_implies():
    levels = (FeatureLevelRecord("metadata.version", 25), FeatureLevelRecord("group.version", 1))
    image = replayed(*levels)
    native, kafka = (
        prepare(image, step(0, 0), evaluation(native=native)).records for native in (True, False)
    )
    assert kafka == [FeatureLevelRecord("group.version", 0), *native]
    assert replayed(*kafka, base=image).features == replayed(*native, base=image).features


def test_others_are_refused_until_it_is_finished():
    state = ImportState("source", -1, in_log(5))
    with pytest.raises(CommandError) as caught:
        refuse_during_import(state)
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    refuse_during_import(ImportState("source", -1, in_log(5), is_finished=True))
