"""Every broken replica."""

from __future__ import annotations

from tests.simulation.zoo import (
    answering,
    checkpoints,
    committing,
    disks,
    downloading,
    durability,
    elections,
    forgetting,
    images,
    liveness,
    membership,
    numbering,
    operating,
    processing,
    reading,
    recovering,
    relaying,
    replicating,
    silences,
    strangers,
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
    *numbering.BUGS,
    *processing.BUGS,
    *checkpoints.BUGS,
    *downloading.BUGS,
    *watching.BUGS,
    *images.BUGS,
    *membership.BUGS,
    *relaying.BUGS,
    *liveness.BUGS,
    *strangers.BUGS,
    *silences.BUGS,
    *operating.BUGS,
    *recovering.BUGS,
)
