"""Broken answers to operators, and work that a cluster leaves undone."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.cli import quorum_may_stop
from quorate.cli.quorum_may_stop import _Finding
from quorate.cli.session import Session
from quorate.replica import boot
from simulation.options import Options
from statemachine.changes import ChangeCounter
from statemachine.sections.tracking import RecordKey
from tests.simulation.experiments.idle import IDLE
from tests.simulation.experiments.stopping import STOPPING
from tests.simulation.zoo.bug import Bug, Patch


def may_stop_by_last_contact(patch: Patch) -> None:
    """``may-stop`` counts every voter that the leader does not report as silent yet."""

    def evaluated_at_once(session: Session, node: int, spare: int) -> _Finding:
        answer = quorum_may_stop._asked(session)
        return quorum_may_stop._evaluate(answer, node, spare, probed_at_ms=-1)

    patch.setattr(quorum_may_stop, "_probed", evaluated_at_once)


def idle_records_change_nothing(patch: Patch) -> None:
    """A no-op record does not count as a change, so no checkpoint becomes due."""
    absorb = ChangeCounter.absorb

    def absorb_keys(
        counter: ChangeCounter, keys: Iterable[RecordKey], empty_records: int = 0
    ) -> None:
        del empty_records
        absorb(counter, keys)

    patch.setattr(ChangeCounter, "absorb", absorb_keys)


def codec_changed_at_a_restart(patch: Patch) -> None:
    """A directory is opened with the codec of its configuration, not with its own."""
    patch.setattr(boot, "check_codec", lambda directory, value, *, uses_native_codec: None)


BUGS = (
    Bug(
        "may-stop-by-last-contact",
        may_stop_by_last_contact,
        ("may-stop",),
        "found from outside: yes for three seconds after a voter was killed",
        experiment=STOPPING,
    ),
    Bug(
        "idle-records-change-nothing",
        idle_records_change_nothing,
        ("idle-log",),
        "KIP-630; found from outside: an idle cluster never trims",
        experiment=IDLE,
    ),
    Bug(
        "codec-changed-at-a-restart",
        codec_changed_at_a_restart,
        ("equal-checkpoints", "equal-images", "no-crash"),
        "ADR 47; found from outside: a native cluster started with Kafka's codec",
        options=Options("releases"),
    ),
)
