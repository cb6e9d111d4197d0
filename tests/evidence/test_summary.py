"""The table on the first screen of docs/evidence.md hides neither failed nor missing runs."""

from __future__ import annotations

from dataclasses import replace

from tests.evidence.record import load
from tests.evidence.summary import summary


def test_a_failed_run_and_a_missing_one_are_named() -> None:
    entries = load()
    assert "This run failed" not in summary(entries)
    failed = {**entries, "chaos": replace(entries["chaos"], exit_code=1)}
    assert summary(failed).count("This run failed") == 1
    without = {name: entry for name, entry in entries.items() if name != "calm"}
    assert "| Elections under full load | not run |" in summary(without)


def test_a_lane_that_failed_is_not_counted_as_passed() -> None:
    entries = load()
    name = next(iter(entries))
    failed = {**entries, name: replace(entries[name], exit_code=1)}
    assert summary(failed) != summary(entries)
    assert summary({}).count("not run") >= 6
