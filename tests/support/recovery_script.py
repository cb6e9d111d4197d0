"""A recovery begins an incarnation of the log on a node's disk, as a script of crashes."""

from __future__ import annotations

from typing import Any, NamedTuple

from quorate.recovery.incarnation import Beginning, begin
from quorate.replica.log_incarnation import is_unfinished
from quorum.errors import IdentityError
from quorum.incarnation import LogIncarnation
from quorum.log.identity import load_identity
from quorum.types import ElectionState, OffsetAndEpoch, ReplicaKey
from tests.support.crash_scripts import Script, Step
from tests.support.crash_sites import WatchedFileSystem
from tests.support.storage_script import (
    HOME,
    append,
    clock,
    commit,
    format_node,
    opened,
    vote,
)

SECOND = Beginning(b"i" * 16, 12, 4, report={"operation": "recovery"})
THIRD = Beginning(b"j" * 16, 20, 1004, report={"operation": "recovery"})


class Recovered(NamedTuple):
    """What a start finds, or why there is none."""

    named: bytes
    """The incarnation that ``meta.properties`` names."""
    incarnation: LogIncarnation | None
    """That of the log; None: the server refuses the directory."""
    voters: tuple[ReplicaKey, ...] = ()
    election: ElectionState | None = None
    end: OffsetAndEpoch | None = None
    high_watermark: int = 0


def begin_on(fs: WatchedFileSystem, beginning: Beginning) -> Any:
    return begin(fs, HOME, load_identity(fs, HOME), beginning, clock())


def read_recovered(fs: WatchedFileSystem) -> Recovered:
    named = load_identity(fs, HOME).log_incarnation_id
    try:
        stores = opened(fs)
    except IdentityError as error:
        assert "repeat the same command" in str(error)  # noqa: PT017 - any other is a failure
        return Recovered(named, None)
    stores.log.close()
    assert not stores.report.losses
    last = stores.state.voters[-1] if stores.state.voters else None
    assert last is not None
    assert not is_unfinished(named, last.incarnation)
    return Recovered(
        named,
        last.incarnation,
        tuple(each.key for each in last.voters),
        stores.state.election,
        stores.log.end,
        stores.state.high_watermark,
    )


def begin_step(beginning: Beginning) -> Step:
    def allows(before: Recovered, after: Recovered, found: Recovered) -> bool:
        """The former incarnation, perhaps with the epoch of the next; unfinished; or the next."""
        if found.incarnation is None:
            return found.named == before.named
        is_former = found._replace(election=before.election) == before
        return found == after or (is_former and found.election in (before.election, after.election))

    return Step(lambda fs: begin_on(fs, beginning), allows)


def run_node(fs: WatchedFileSystem) -> None:
    """Leave a log of 18 records, of which 5 are known to be committed."""
    format_node(fs)
    for step in (vote(1), append(0, 1, 4), commit(5), vote(4), append(9, 4, 4)):
        step.run(fs)


RECOVERY_SCRIPT = Script(
    prepare=run_node, read=read_recovered, steps=(begin_step(SECOND), begin_step(THIRD))
)
