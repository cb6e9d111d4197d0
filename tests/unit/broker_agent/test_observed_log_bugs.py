"""The bug zoo of the agent's observed log: one broken rule each, found by its random runs.

``ObservedLog`` waits on an event loop and compares images in a thread, so the simulator does not
run it. ``run_at_random`` does, by seeds, over the production controller. Seeds are tried in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from quorate.broker_agent import observed_log
from quorate.broker_agent.image_feed import ImageChange, ImageFeed
from quorate.controller.publishing import Published
from tests.unit.broker_agent.test_observed_log import run_at_random

SEEDS_MAX = 40
Patch = pytest.MonkeyPatch


def checkpoint_is_no_change(patch: Patch) -> None:
    """Where a checkpoint replaced the image, nothing is taken to differ."""
    patch.setattr(observed_log, "differing_partitions", lambda before, after: frozenset())


def steps_beyond_the_bound_dropped(patch: Patch) -> None:
    """An agent that is behind loses the steps that do not fit, and gets no image in their place."""
    add = observed_log._Waiting.add

    def added(waiting: observed_log._Waiting, published: Published) -> None:
        if len(waiting.steps) < observed_log.WAITING_STEPS_MAX:
            add(waiting, published)

    patch.setattr(observed_log._Waiting, "add", added)


def only_the_last_batch_of_a_step(patch: Patch) -> None:
    """Of a step with several batches, the last one is handed out."""
    changes = observed_log._changes

    def last(feed: ImageFeed, published: Published) -> Iterator[ImageChange]:
        yield from [*changes(feed, published)][-1:]

    patch.setattr(observed_log, "_changes", last)


def steps_before_a_jump_are_replayed(patch: Patch) -> None:
    """A checkpoint is handed out before the steps that wait, which are older."""
    add = observed_log._Waiting.add

    def added(waiting: observed_log._Waiting, published: Published) -> None:
        kept = [*waiting.steps]
        add(waiting, published)
        if published.snapshot_id is not None:
            waiting.steps.extend(kept)

    patch.setattr(observed_log._Waiting, "add", added)


@pytest.mark.parametrize(
    "bug",
    [
        checkpoint_is_no_change,
        steps_beyond_the_bound_dropped,
        only_the_last_batch_of_a_step,
        steps_before_a_jump_are_replayed,
    ],
    ids=lambda bug: bug.__name__,
)
def test_a_seeded_bug_is_found(bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """The same seeds pass without it (``test_observed_log.py``)."""
    bug(monkeypatch)
    for seed in range(SEEDS_MAX):
        try:
            run_at_random(seed, monkeypatch)
        except Exception:
            return
    pytest.fail(f"not found in {SEEDS_MAX} seeds")
