"""The bug zoo of ListOffsets and of typed records: one changed line each, and the test that fails.

Simulated consumers ask for the earliest and the latest offset and read encoded records; what they
can find is in ``tests/simulation/zoo/lookups.py``. This has the rest: offsets by time, and typed
batches, states and positions.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from quorate.client import fetched_batches
from quorate.services import change_message, log_reads, typed_records, watch_cursor
from quorate.services.log_reads import LogReads
from tests.unit.client import test_typed_consumer as consumer
from tests.unit.services import test_log_services as log
from tests.unit.services import test_secrets as secrets
from tests.unit.services import test_typed_records as typed

BY_TIME = log.test_offsets_by_time_carry_their_epoch
FENCED = partial(
    log.test_lookups_are_fenced_by_the_leader_epoch_and_by_leadership,
    "ListOffsets",
    log.ListOffsetsRequest,
)
SAME_POSITIONS = partial(
    consumer.test_typed_records_have_the_same_positions_and_digests_as_encoded_ones, 0
)
SECRETS = partial(secrets.test_a_path_hides_secrets_until_they_are_asked_for, form="typed")


@dataclass(frozen=True)
class Seeded:
    """A line of a function, what stands there instead, and the test that must fail."""

    name: str
    owner: Any
    """The module or class that has the function."""
    function: str
    line: str
    instead: str
    test: Callable[..., None]


_LIST, _FIRST = (LogReads, "_list_from"), (LogReads, "_first_at")
BUGS = (
    Seeded(
        "time-above-not-at", *_FIRST,
        "if record.timestamp >= timestamp:", "if record.timestamp > timestamp:", BY_TIME,
    ),
    Seeded(
        "time-finds-the-batch", *_FIRST,
        "return _listed(record.offset, header.epoch, record.timestamp)",
        "return _listed(header.base_offset - 1, header.epoch, record.timestamp)", BY_TIME,
    ),
    Seeded(
        "time-skips-half-of-the-log", *_FIRST,
        "low = header.end_offset", "low = header.end_offset + 2", BY_TIME,
    ),
    Seeded(
        "time-with-the-leaders-epoch", *_FIRST,
        "return _listed(record.offset, header.epoch, record.timestamp)",
        "return _listed(record.offset, self._node.leadership.epoch, record.timestamp)", BY_TIME,
    ),
    Seeded(
        "time-of-nothing-is-the-end", *_FIRST,
        "return _listed(-1, -1, -1)", "return _listed(high, -1, -1)", BY_TIME,
    ),
    Seeded(
        "latest-without-an-epoch", *_LIST,
        "return _listed(node.high_watermark, epoch, -1)",
        "return _listed(node.high_watermark, -1, -1)", BY_TIME,
    ),
    Seeded(
        "newest-time-is-behind-the-last-record", *_LIST,
        "return _listed(header.end_offset - 1, header.epoch, header.max_timestamp)",
        "return _listed(header.end_offset, header.epoch, header.max_timestamp)", BY_TIME,
    ),
    Seeded(
        "unknown-special-time-is-a-time", *_LIST,
        "if request.timestamp < MAX_TIMESTAMP:", "if False:", BY_TIME,
    ),
    Seeded(
        "latest-of-a-leader-that-committed-nothing", *_LIST,
        "if node.high_watermark <= node.leader_epoch_start:", "if False:",
        log.test_nothing_is_latest_before_the_leaders_own_epoch_is_committed,
    ),
    Seeded("epoch-not-compared", *_LIST, "check_epoch(", "print if True else (", FENCED),
    Seeded("any-node-answers", *_LIST, "require_leader(node)", "pass", FENCED),
    Seeded(
        "trimmed-meanwhile", LogReads, "list_offsets",
        "if self._node.log_start == start:", "if True:",
        partial(log.test_offsets_are_listed_anew_when_the_log_is_trimmed_meanwhile,
                time=-2, expected=4),
    ),
    Seeded(
        "digest-of-what-is-shown", log_reads, "_add_typed",
        "fold(digest, read[", "fold(digest, records[", SAME_POSITIONS,
    ),
    Seeded(
        "typed-batches-without-digests", log_reads, "_add_typed",
        "batch.log_digest = digest", "pass",
        consumer.test_the_digest_of_typed_batches_finds_a_truncation_where_epochs_are_equal,
    ),
    Seeded(
        "digest-behind-the-first-batch", LogReads, "fetch",
        "node.log_digest(read_header(records).base_offset)",
        "node.log_digest(read_header(records).end_offset)", SAME_POSITIONS,
    ),
    Seeded(
        "both-forms-are-sent", LogReads, "fetch",
        'records=b"" if is_typed else records,', "records=records,",
        typed.test_a_program_made_from_the_protos_alone_prints_topic_and_leader_of_a_change,
    ),
    Seeded(
        "typed-secrets-of-the-log", LogReads, "fetch",
        "_add_typed(response, records, read, digest)",
        "_add_typed(response, read, read, digest)", partial(SECRETS, "FetchLog"),
    ),
    Seeded(
        "typed-secrets-of-a-state", watch_cursor, "state_chunks",
        "record = each if shown is None else shown(each)", "record = each",
        partial(SECRETS, "Watch, state"),
    ),
    Seeded(
        "state-is-never-typed", watch_cursor, "state_chunks",
        "dump_records(image) if is_typed", "dump_records(image) if False",
        consumer.test_a_state_in_place_of_trimmed_records_is_typed,
    ),
    Seeded(
        "only-lone-records-are-typed", change_message, "change_batch",
        "if is_typed:", "if is_typed and len(records) == 1:",
        consumer.test_the_records_of_a_batch_above_the_position_alone_are_handed_out,
    ),
    Seeded(
        "typed-batch-ends-behind-its-first-record", change_message, "change_batch",
        "end_offset=header.end_offset,", "end_offset=header.base_offset + 1,", SAME_POSITIONS,
    ),
    Seeded(
        "records-of-a-batch-have-its-offset", fetched_batches, "_typed_records",
        "batch.base_offset + place,", "batch.base_offset,",
        consumer.test_the_records_of_a_batch_above_the_position_alone_are_handed_out,
    ),
    Seeded(
        "unknown-records-are-dropped", typed_records, "add_encoded",
        "target.undecoded = value", "pass",
        typed.test_what_this_release_does_not_know_stays_undecoded,
    ),
    Seeded(
        "absent-list-is-empty", typed_records, "_fill",
        "content = getattr(value, spec.name)",
        "content = getattr(value, spec.name, None) or (() if spec.name == 'replicas' else None)",
        typed.test_an_absent_list_differs_from_an_empty_one,
    ),
    Seeded(
        "record-of-defaults-is-absent", typed_records, "add_record",
        "message.SetInParent()", "pass", typed.test_every_field_of_every_type_arrives,
    ),
    Seeded(
        "last-field-of-nested-ones-left-out", typed_records, "_extend",
        "kind.element.fields, each", "kind.element.fields[:-1], each",
        typed.test_every_field_of_every_type_arrives,
    ),
)  # fmt: skip


def install(bug: Seeded, patch: pytest.MonkeyPatch) -> None:
    """Compile the function with the changed line; its identity stays, whoever has imported it."""
    function = getattr(bug.owner, bug.function)
    source = textwrap.dedent(inspect.getsource(function))
    assert bug.line in source, "the line has changed: adapt the bug"
    code = compile(
        "from __future__ import annotations\n" + source.replace(bug.line, bug.instead),
        function.__code__.co_filename,
        "exec",
    )
    made: dict[str, Any] = {}
    exec(code, function.__globals__, made)
    patch.setattr(function, "__code__", made[bug.function].__code__)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_seeded_bug_fails_its_test(bug: Seeded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: no rule without a check. Method: the named test, with and without the bug."""
    needed = inspect.signature(bug.test).parameters

    def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            bug.test(**({"monkeypatch": patch} if "monkeypatch" in needed else {}))

    run()
    install(bug, monkeypatch)
    with pytest.raises((Exception, pytest.fail.Exception)):
        run()
