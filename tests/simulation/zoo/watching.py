"""Broken replicas whose watchers miss something, or hear of it too early."""

from __future__ import annotations

from dataclasses import replace

from quorate.controller.controller import Controller
from quorate.controller.publishing import Published, Subscribers
from quorum.batch import scan_batches
from quorum.core.output import LeadershipChanged
from tests.simulation.zoo.bug import Bug, Patch


def checkpoint_taken_without_a_word(patch: Patch) -> None:
    """Watchers are not told that a checkpoint has replaced the image."""
    tell = Subscribers.tell

    def tell_records_only(subscribers: Subscribers, published: Published) -> None:
        if published.snapshot_id is None:
            tell(subscribers, published)

    patch.setattr(Subscribers, "tell", tell_records_only)


def progress_ahead_of_records(patch: Patch) -> None:
    """Watchers are told of a position before they are handed the last record below it."""
    tell = Subscribers.tell

    def tell_early(subscribers: Subscribers, published: Published) -> None:
        data = b"".join(published.data)
        headers = scan_batches(data)
        if len(headers) > 1:
            published = replace(published, data=(data[: -headers[-1].size],))
        tell(subscribers, published)

    patch.setattr(Subscribers, "tell", tell_early)


def records_told_twice(patch: Patch) -> None:
    """Watchers are handed the last committed records a second time when leadership changes."""
    on_leadership = Controller.on_leadership
    tell = Subscribers.tell
    newest: dict[int, Published] = {}

    def remember(subscribers: Subscribers, published: Published) -> None:
        newest[id(subscribers)] = published
        tell(subscribers, published)

    def repeat(controller: Controller, change: LeadershipChanged) -> None:
        on_leadership(controller, change)
        last = newest.get(id(controller._subscribers))
        if last is not None:
            tell(controller._subscribers, last)

    patch.setattr(Subscribers, "tell", remember)
    patch.setattr(Controller, "on_leadership", repeat)


BUGS = (
    Bug(
        "checkpoint-taken-without-a-word",
        checkpoint_taken_without_a_word,
        ("watch-is-prefix", "liveness"),
        "etcd #17529, #18089, #19179: a watch skips what was compacted",
    ),
    Bug(
        "progress-ahead-of-records",
        progress_ahead_of_records,
        ("watch-is-prefix",),
        "etcd #15220",
    ),
    Bug(
        "records-told-twice",
        records_told_twice,
        ("watch-is-prefix",),
        "etcd #18089; Jepsen, NATS: repeated deliveries",
    ),
)
