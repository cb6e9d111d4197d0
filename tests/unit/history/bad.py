"""Histories that no correct cluster produces, each with the rule that must be broken."""

from __future__ import annotations

from collections.abc import Callable

from history.history import Delivery, LogGap
from history.operation import Action, Level
from tests.unit.history.histories import UNKNOWN, B, Script

BAD: dict[str, tuple[str, Callable[[Script], object]]] = {}


def bad(rule: str):
    def keep(write: Callable[[Script], object]) -> Callable[[Script], object]:
        BAD[write.__name__] = (rule, write)
        return write

    return keep


@bad("linearizable")
def stale_read(s: Script) -> None:
    s.set("c1", "1", (0, 1))
    s.set("c1", "2", (2, 3))
    s.get("c2", "1", (4, 5))


@bad("linearizable")
def lost_update(s: Script) -> None:
    s.set("c1", "1", (0, 1))
    s.get("c2", None, (2, 3))


@bad("linearizable")
def read_of_a_value_that_nobody_wrote(s: Script) -> None:
    s.set("c1", "1", (0, 1))
    s.get("c2", "7", (2, 3))


@bad("linearizable")
def read_from_the_future(s: Script) -> None:
    s.get("c2", "1", (0, 1))
    s.set("c1", "1", (2, 3))


@bad("linearizable")
def dirty_read_of_an_unknown_write_that_is_lost(s: Script) -> None:
    s.set("c1", "1", (0, 1))
    s.set("c1", "2", (2, None), **UNKNOWN)
    s.get("c2", "2", (3, 4))
    s.get("c2", "1", (5, 6))


@bad("linearizable")
def unknown_write_that_comes_and_goes(s: Script) -> None:
    s.set("c1", "1", (0, None), **UNKNOWN)
    s.get("c2", "1", (1, 2))
    s.get("c2", None, (3, 4))
    s.get("c2", "1", (5, 6))


@bad("linearizable")
def retry_applied_again_after_a_later_write(s: Script) -> None:
    s.set("c1", "1", (0, 1))
    s.set("c2", "2", (2, 3))
    s.get("c3", "2", (4, 5))
    s.get("c3", "1", (6, 7))


@bad("linearizable")
def two_reads_that_see_two_writes_in_different_orders(s: Script) -> None:
    s.set("c1", "1", (0, 10))
    s.set("c2", "2", (0, 10))
    s.get("c3", "1", (1, 2))
    s.get("c4", "2", (3, 4))
    s.get("c3", "1", (5, 6))


@bad("linearizable")
def two_successful_creations(s: Script) -> None:
    s.create("c1", (0, 5), "A")
    s.create("c2", (0, 5), "B")


@bad("linearizable")
def two_successful_deletions(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.delete("c1", (2, 9))
    s.delete("c2", (2, 9))


@bad("linearizable")
def two_successful_growths_to_the_same_size(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.grow("c1", 4, (2, 9))
    s.grow("c2", 4, (2, 9))


@bad("linearizable")
def deletion_of_another_incarnation(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.delete("c1", (2, 3))
    s.create("c1", (4, 5), "B")
    s.delete("c2", (6, 7), arguments={"topic_id": "A"})


@bad("linearizable")
def creation_refused_though_nothing_is_there(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.delete("c1", (2, 3))
    s.refused("c2", Action.CREATE, "TOPIC_ALREADY_EXISTS", (4, 5))


@bad("linearizable")
def write_refused_though_the_topic_is_there(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.refused("c2", Action.ALTER, "UNKNOWN_TOPIC_OR_PARTITION", (2, 3))


@bad("linearizable")
def partitions_that_shrink(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.grow("c1", 4, (2, 3))
    s.look("c2", {"exists": True, "partitions": 1}, (4, 5))


@bad("linearizable")
def id_that_changes(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.look("c2", {"exists": True, "topic_id": "B"}, (2, 3))


@bad("linearizable")
def unknown_creation_with_the_id_of_an_earlier_topic(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.delete("c1", (2, 3))
    s.create("c1", (4, None), **UNKNOWN)
    s.look("c2", {"exists": True, "topic_id": "A"}, (5, 6))


@bad("linearizable")
def configuration_that_survives_its_topic(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.set("c1", "1", (2, 3), key="topic:t")
    s.delete("c1", (4, 5))
    s.create("c1", (6, 7), "B")
    s.get("c2", "1", (8, 9), key="topic:t")


@bad("linearizable")
def half_of_an_atomic_change(s: Script) -> None:
    changes = [["a", "set", "1"], ["b", "set", "1"]]
    s.add("c1", B, Action.ALTER, (0, 9), arguments={"changes": changes})
    s.look("c2", {"configs": {"a": "1", "b": None}}, (1, 2), key=B)


@bad("linearizable")
def lost_append(s: Script) -> None:
    s.append("c1", "1", (0, 5))
    s.append("c2", "2", (0, 5))
    s.get("c3", "2", (6, 7))


@bad("linearizable")
def refused_write_that_shows(s: Script) -> None:
    changes = [["a", "set", "1"]]
    s.refused("c1", Action.ALTER, "INVALID_CONFIG", (0, 1), key=B, arguments={"changes": changes})
    s.get("c2", "1", (2, 3))


@bad("unique-ids")
def one_id_for_two_topics(s: Script) -> None:
    s.create("c1", (0, 1), "A")
    s.delete("c1", (2, 3))
    s.create("c1", (4, 5), "A")


@bad("stale-read")
def linearizable_read_behind_an_acknowledged_offset(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=8)
    s.look("c2", {"exists": False}, (2, 3), key="topic:other", offset=7)


@bad("stale-write")
def write_that_is_put_before_an_acknowledged_one(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=8)
    s.set("c1", "1", (2, 3), key="broker:2", offset=7)


@bad("at-least")
def bounded_read_below_its_bound(s: Script) -> None:
    s.get("c1", None, (0, 1), level=Level.AT_LEAST, at_least=9, offset=8)


@bad("prefix")
def bounded_read_without_its_own_write(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=5)
    s.get("c1", None, (2, 3), level=Level.AT_LEAST, at_least=5, offset=6)


@bad("prefix")
def local_read_that_is_no_prefix(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=5)
    s.set("c1", "2", (2, 3), offset=6)
    s.get("c2", "1", (4, 5), level=Level.LOCAL, offset=6)


@bad("prefix")
def local_read_of_an_uncommitted_write(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=5)
    s.set("c1", "2", (2, None), **UNKNOWN)
    s.get("c2", "2", (3, 4), level=Level.LOCAL, offset=5)


@bad("session-went-back")
def local_reads_that_go_back(s: Script) -> None:
    s.get("c1", None, (0, 1), level=Level.LOCAL, offset=9, session="n1.1")
    s.get("c1", None, (2, 3), level=Level.LOCAL, offset=8, session="n1.1")


@bad("lost-write")
def acknowledged_write_that_is_not_in_the_log(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=2, mark="m1")
    s.log(1, 2, 3)


@bad("applied-twice")
def retry_that_is_in_the_log_twice(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=2, mark="m1")
    s.log(1, 2, 3, marks={2: ("m1",), 3: ("m1",)})


@bad("applied-twice")
def unknown_write_that_is_in_the_log_twice(s: Script) -> None:
    s.set("c1", "1", (0, None), mark="m1", **UNKNOWN)
    s.log(1, 2, marks={1: ("m1",), 2: ("m1",)})


@bad("applied-though-refused")
def refused_write_in_the_log(s: Script) -> None:
    s.refused("c1", Action.ALTER, "INVALID_CONFIG", (0, 1), key=B, mark="m1")
    s.log(1, 2, marks={2: ("m1",)})


@bad("wrong-offset")
def write_elsewhere_than_acknowledged(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=1, mark="m1")
    s.log(1, 2, marks={2: ("m1",)})


@bad("nobodys-write")
def write_that_nobody_asked_for(s: Script) -> None:
    s.log(1, 2, marks={2: ("m1",)})


@bad("watch-gap")
def watch_with_a_gap(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 0), ("batch", 0, 1), ("batch", 2, 3))


@bad("watch-repeat")
def watch_with_a_repeat(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 0), ("batch", 0, 1), ("batch", 0, 1), ("batch", 1, 2))


@bad("watch-repeat")
def watch_out_of_order(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 0), ("batch", 1, 2), ("batch", 0, 1))


@bad("watch-progress")
def progress_ahead_of_what_was_handed_out(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 0), ("batch", 0, 1), ("progress", -1, 2))


@bad("watch-differs")
def watch_of_something_else(s: Script) -> None:
    s.log(1, 3)
    s.delivered(("state", -1, 0), ("batch", 0, 1), ("batch", 1, 2))


@bad("watch-ghost")
def watch_beyond_the_log(s: Script) -> None:
    s.log(1, 2)
    s.delivered(("state", -1, 1), ("batch", 1, 2), ("batch", 2, 3))


@bad("watch-resume")
def resume_that_skips(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 0), ("batch", 0, 1), ("resume", -1, 2), ("batch", 2, 3))


@bad("watch-start")
def changes_before_any_state(s: Script) -> None:
    s.log(1)
    s.delivered(("batch", 0, 1))


@bad("watch-back")
def state_that_is_older_than_what_was_handed_out(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 2), ("batch", 2, 3), ("state", -1, 1))


@bad("watch-back")
def state_that_is_older_than_the_log_is_said_to_begin(s: Script) -> None:
    s.log(1, 2, 3, 4)
    s.delivered(("state", -1, 1), ("refused", 3, 4), ("state", -1, 2))


@bad("watch-refused")
def watcher_refused_what_can_be_read(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 1), ("resume", -1, 1), ("refused", 1, 3))


@bad("watch-refused")
def watcher_gets_an_empty_range(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 1), ("refused", 3, 2))


@bad("watch-diverged")
def committed_changes_called_another_history(s: Script) -> None:
    s.log(1, 2, 3)
    s.delivered(("state", -1, 0), ("batch", 0, 1), ("resume", -1, 1), ("diverged", -1, 0))


@bad("watch-state")
def two_states_of_one_offset(s: Script) -> None:
    s.log(1, 2)
    for watcher, digest in (("w1", "a"), ("w2", "b")):
        s.history.deliveries.append(Delivery(watcher, "state", 2, digest=digest))


@bad("log-gap")
def log_with_a_hole(s: Script) -> None:
    s.log(1, 2)
    s.history.log.append(s.history.log[0].__class__(3, 4, 1, "x"))


@bad("log-gap")
def log_with_a_larger_hole_than_was_trimmed(s: Script) -> None:
    s.trimmed_log((0, 2), (4, 6))
    s.history.gaps[0] = LogGap(2, 3)


@bad("applied-twice")
def retry_on_both_sides_of_what_was_trimmed(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=2, mark="m1")
    s.trimmed_log((0, 2), (4, 6), marks={2: ("m1",), 6: ("m1",)})


@bad("lost-write")
def lost_write_beside_what_was_trimmed(s: Script) -> None:
    s.set("c1", "1", (0, 1), offset=2, mark="m1")
    s.trimmed_log((0, 2), (4, 6))


@bad("log-epoch")
def log_whose_epochs_fall(s: Script) -> None:
    s.log(1, 2)
    s.history.log.append(s.history.log[0].__class__(2, 3, 0, "x"))
