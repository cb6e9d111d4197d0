"""A forged history that another node has fetched counts as forged there as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.log.layout import segment_path
from simulation.forgery import forge_batch
from simulation.invariants.violation import Violation
from simulation.memory_filesystem import MemoryFileSystem
from tests.support.stub_cluster import Stage, batch_of

DIRECTORY = Path("/log")


def _forged_and_original() -> tuple[bytes, bytes]:
    fs = MemoryFileSystem()
    fs.make_directory(DIRECTORY)
    file = fs.open(segment_path(DIRECTORY, 0), writable=True, create=True)
    file.write_at(0, batch_of(0, 1))
    file.close()
    forged = forge_batch(fs, DIRECTORY, 0)
    assert forged is not None
    return forged


def test_who_has_fetched_it_may_lose_it_again() -> None:
    stage = Stage()
    forged, original = _forged_and_original()
    stage.run_observer.disguise(forged, original)
    stage.append_batch(1, original, 1)
    stage.append_batch(2, forged, 1)
    assert stage.run_observer.forged == {2}, "only its holder"

    stage.open(2)
    stage.run_observer.wiped(2)
    assert not stage.run_observer.forged, "another disk"

    with pytest.raises(Violation, match="flushed records were lost"):
        stage.open(1)


def test_what_a_crash_left_of_it_counts_too() -> None:
    stage = Stage()
    forged, original = _forged_and_original()
    stage.run_observer.disguise(forged, original)
    stage.append_batch(1, original, 1)
    stage.append_batch(2, forged, 1, durable=False)
    assert not stage.run_observer.forged
    stage.open(2, log=forged)
    assert stage.run_observer.forged == {2}


def test_what_was_forged_in_one_run_is_no_forgery_in_the_next() -> None:
    forged, original = _forged_and_original()
    Stage().run_observer.disguise(forged, original)

    stage = Stage()
    stage.append_batch(1, original, 1)
    with pytest.raises(Violation, match="two histories end at one position"):
        stage.append_batch(2, forged, 1)
    assert not stage.run_observer.forged


def test_a_batch_that_was_split_before_it_counted_as_forged_counts_from_then_on() -> None:
    run_observer = Stage().run_observer
    forged, original = _forged_and_original()
    assert not run_observer.split(forged)[0].is_forged
    run_observer.disguise(forged, original)
    assert run_observer.split(forged)[0].is_forged
    assert run_observer.split(forged)[0].content == run_observer.split(original)[0].content
