"""The checker of the kill test: each kind of wrong outcome is found, and only that."""

from __future__ import annotations

import pytest

from statemachine.codec import encode_record
from statemachine.records_topics import ConfigRecord, TopicRecord
from tests.integration.write_check import (
    NodeLog,
    image_violations,
    keys_in,
    log_violations,
    write_violations,
)
from tests.integration.write_load import CONFIG_NAME, Ledger, Outcome, config_key, topic_key

KEYS = [config_key("load-0", str(value)) for value in range(1, 6)]


def ledger(*outcomes: Outcome) -> Ledger:
    made = Ledger()
    for place, (key, outcome) in enumerate(zip(KEYS, outcomes, strict=False)):
        made.outcomes[key] = outcome
        if outcome is Outcome.ACKNOWLEDGED:
            made.offsets[key] = place + 1
    return made


@pytest.mark.parametrize(
    ("outcome", "times", "words"),
    [
        (Outcome.ACKNOWLEDGED, 1, ""),
        (Outcome.ACKNOWLEDGED, 0, "acknowledged but lost"),
        (Outcome.ACKNOWLEDGED, 2, "more than once"),
        (Outcome.UNKNOWN, 0, ""),
        (Outcome.UNKNOWN, 1, ""),
        (Outcome.UNKNOWN, 2, "more than once"),
        (Outcome.REFUSED, 0, ""),
        (Outcome.REFUSED, 1, "cannot be"),
        (Outcome.NEVER_SENT, 1, "cannot be"),
    ],
)
def test_how_often_a_write_may_be_there(outcome: Outcome, times: int, words: str) -> None:
    found = write_violations(ledger(outcome), {KEYS[0]: times} if times else {}, where="the log")
    assert len(found) == (1 if words else 0)
    assert all(words in each for each in found)


def test_a_write_without_a_client_call_is_found() -> None:
    (found,) = write_violations(ledger(), {KEYS[0]: 1}, where="the log")
    assert "nobody wrote it" in found


def test_keys_are_found_in_records() -> None:
    values = [
        encode_record(ConfigRecord(2, "load-0", CONFIG_NAME, "1")),
        encode_record(ConfigRecord(2, "load-0", CONFIG_NAME, None)),
        encode_record(ConfigRecord(2, "load-0", "segment.bytes", "1")),
        encode_record(TopicRecord("t", bytes(15) + b"\x09")),
        b"",
    ]
    assert keys_in(values) == {KEYS[0]: 1, topic_key("t"): 1}


def node_log(**records: bytes) -> NodeLog:
    made = {int(name[1:]): (1, value) for name, value in records.items()}
    return NodeLog(min(made), max(made) + 1, made)


def test_logs_that_differ_or_end_early() -> None:
    same = node_log(_3=b"a", _4=b"b")
    assert log_violations({1: same, 2: node_log(_4=b"b")}, {}) == []
    assert "differ: 4" in log_violations({1: same, 2: node_log(_3=b"a", _4=b"c")}, {})[0]
    assert "end at different offsets" in log_violations({1: same, 2: node_log(_3=b"a")}, {})[0]


def test_what_a_reader_was_given_must_stay() -> None:
    logs = {1: node_log(_3=b"a", _5=b"b")}
    assert log_violations(logs, {2: (1, b"trimmed"), 3: (1, b"a"), 5: (1, b"b")}) == []
    assert "gone now: 4" in log_violations(logs, {4: (1, b"x")})[0]
    assert "differs from what a reader was given" in log_violations(logs, {5: (1, b"x")})[0]
    assert "differs from what a reader was given" in log_violations(logs, {5: (2, b"b")})[0]


def test_an_image_that_is_behind_what_was_acknowledged() -> None:
    made = ledger(Outcome.ACKNOWLEDGED, Outcome.ACKNOWLEDGED, Outcome.UNKNOWN)
    made.outcomes[topic_key("t")] = Outcome.ACKNOWLEDGED
    assert image_violations(made, ["t"], {"load-0": 2}) == []
    assert image_violations(made, ["t"], {"load-0": 3}) == []
    assert "although 2 was acknowledged" in image_violations(made, ["t"], {"load-0": 1})[0]
    assert "missing from the image: topic t" in image_violations(made, [], {"load-0": 2})[0]
