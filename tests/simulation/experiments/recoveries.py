"""The runs of ``quorate sim recoveries``, for bugs of consumers and programs over a recovery."""

from __future__ import annotations

from quorum.errors import InvariantViolation, QuorateError
from simulation.invariants.violation import Violation
from simulation.recoveries.run import RecoveryRun
from tests.simulation.experiments.experiment import Experiment

NAME = "recoveries"


def run(seed: int) -> Violation | None:
    """Run a seed, and return what it violated."""
    try:
        RecoveryRun(seed).run()
    except Violation as found:
        return found
    except (QuorateError, InvariantViolation, AssertionError) as error:
        return Violation(NAME, "a node failed", error=repr(error))
    return None


RECOVERIES = Experiment("recoveries", run)
