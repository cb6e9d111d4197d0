"""Commands that commit positions: what they refuse, and what they may be combined with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.errors import CommandError, ErrorCode, ReplayError
from quorum.log_position import LINEAGE_EPOCHS_MAX
from quorum.types import uuid_to_text
from statemachine.commands import (
    CommitPosition,
    ImportBatch,
    InitProducerId,
    ReadEpoch,
    WithPosition,
)
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE
from statemachine.import_state import SourcePosition
from statemachine.prepare import prepare
from statemachine.prepare.positions import (
    GROUP_LENGTH_MAX,
    METADATA_LENGTH_MAX,
    POSITION_EPOCHS_MAX,
)
from statemachine.records import CommittedPositionRecord, RemoveCommittedPositionRecord
from tests.support.image_builder import evaluation

VALID = CommitPosition("g" * GROUP_LENGTH_MAX, 10, 2, (ReadEpoch(1, 0), ReadEpoch(2, 9)))


def test_the_bounds_are_within_what_a_client_commits() -> None:
    epochs = tuple(ReadEpoch(number, number) for number in range(POSITION_EPOCHS_MAX))
    largest = replace(VALID, offset=2**40, epochs=epochs, metadata="x" * METADATA_LENGTH_MAX)
    assert len(prepare(EMPTY_IMAGE, largest, evaluation()).records) == 1
    assert POSITION_EPOCHS_MAX < LINEAGE_EPOCHS_MAX


def test_a_position_of_another_incarnation_of_the_log_is_refused() -> None:
    """What was read there may be gone (ADR 65). Unknown incarnations are not compared."""
    here, there = b"h" * 16, b"t" * 16
    context = evaluation()
    for read, log in ((b"", here), (there, b""), (here, here)):
        context.log_incarnation = log
        assert prepare(EMPTY_IMAGE, replace(VALID, log_incarnation=read), context).records
    stale = replace(VALID, log_incarnation=there)
    init = InitProducerId()
    for command in (stale, WithPosition(init, stale)):
        with pytest.raises(CommandError, match=uuid_to_text(there)) as caught:
            prepare(EMPTY_IMAGE, command, context)
        assert caught.value.code is ErrorCode.LOG_INCARNATION_MISMATCH


@pytest.mark.parametrize(
    "change",
    [
        {"group": ""},
        {"group": "g" * (GROUP_LENGTH_MAX + 1)},
        {"offset": -1},
        {"leader_epoch": -2},
        {"metadata": "ä" * (METADATA_LENGTH_MAX // 2 + 1)},
        {"epochs": tuple(ReadEpoch(e, e) for e in range(POSITION_EPOCHS_MAX + 1)), "offset": 999},
        {"epochs": (ReadEpoch(2, 0), ReadEpoch(2, 1))},
        {"epochs": (ReadEpoch(1, 5), ReadEpoch(2, 5))},
        {"epochs": (ReadEpoch(1, 10),)},
        {"epochs": (ReadEpoch(-1, 1),)},
        {"epochs": (ReadEpoch(1, 1, b"short"),)},
        {"log_digest": b"short"},
        {"log_incarnation": b"x" * 17},
    ],
)
def test_what_no_consumer_can_have_read_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(CommandError) as caught:
        prepare(EMPTY_IMAGE, replace(VALID, **change), evaluation())  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "command", [VALID, ImportBatch("other", SourcePosition(True, 0), SourcePosition(True, 0))]
)
def test_some_commands_cannot_share_a_batch(command: CommitPosition | ImportBatch) -> None:
    with pytest.raises(CommandError, match="cannot be combined"):
        prepare(EMPTY_IMAGE, WithPosition(command, VALID), evaluation())


def test_replay_is_strict_and_counts_changes() -> None:
    delta = ImageDelta(EMPTY_IMAGE)
    delta.replay(CommittedPositionRecord("g", 1))
    assert delta.changed_keys == frozenset()
    delta.replay(CommittedPositionRecord("g", 2))
    assert delta.changed_keys == {CommittedPositionRecord("g", 2).record_key()}
    delta.replay(RemoveCommittedPositionRecord("g"))
    assert delta.finish().positions.of("g") is None
    with pytest.raises(ReplayError, match="unknown group"):
        ImageDelta(EMPTY_IMAGE).replay(RemoveCommittedPositionRecord("g"))
