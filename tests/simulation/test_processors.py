"""Programs that read, process and write: every kind of them, also where epochs are soon used up."""

from __future__ import annotations

import pytest

from simulation import cluster
from simulation.episode import run
from simulation.options import Options
from simulation.processors import Kind
from statemachine.prepare import producer_ids
from statemachine.sections.producers import ProducersDelta

SEEDS = range(1, 5)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_clean_although_ids_are_replaced_after_two_epochs(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: 360.3 in the simulation, where nobody writes 32,767 epochs. Method: fewer epochs."""
    replaced: set[tuple[int, int]] = set()
    seed = 0
    replace = ProducersDelta._replace

    def counted(delta: ProducersDelta, producer_id: int, successor_id: int, at_ms: int) -> None:
        replaced.add((seed, producer_id))
        replace(delta, producer_id, successor_id, at_ms)

    monkeypatch.setattr(cluster, "SHARE", 1.0)
    monkeypatch.setattr(cluster, "KINDS", (kind,))
    monkeypatch.setattr(producer_ids, "EPOCH_EXHAUSTED", 1)
    monkeypatch.setattr(ProducersDelta, "_replace", counted)
    processed = fenced = 0
    for seed in SEEDS:
        outcome = run(seed, Options("network"), is_traced=False)
        assert outcome.violation is None, outcome.report()
        processed += outcome.counts.processed
        fenced += outcome.counts.processes_fenced
    assert processed > 20
    assert fenced > 1
    assert len(replaced) > 3
