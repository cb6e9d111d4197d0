"""Every broken replica."""

from __future__ import annotations

from tests.simulation.zoo import (
    answering,
    checkpoints,
    committing,
    disks,
    durability,
    elections,
    forgetting,
    images,
    liveness,
    membership,
    reading,
    relaying,
    replicating,
    voting,
    watching,
)
from tests.simulation.zoo.bug import Bug

BUGS: tuple[Bug, ...] = (
    *durability.BUGS,
    *elections.BUGS,
    *voting.BUGS,
    *committing.BUGS,
    *replicating.BUGS,
    *reading.BUGS,
    *disks.BUGS,
    *forgetting.BUGS,
    *answering.BUGS,
    *checkpoints.BUGS,
    *watching.BUGS,
    *images.BUGS,
    *membership.BUGS,
    *relaying.BUGS,
    *liveness.BUGS,
)
