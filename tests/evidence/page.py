"""Fills the generated parts of docs/evidence.md and docs/evidence/ from docs/evidence.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.evidence import campaign_tables, summary, tables, zoo_table
from tests.evidence.record import ROOT, Entry, load
from tests.support.doc_regions import rendered

PAGES = (ROOT / "docs" / "evidence.md", *sorted((ROOT / "docs" / "evidence").glob("*.md")))
TABLES: Mapping[str, Callable[[Mapping[str, Entry]], str]] = {
    "evidence-summary": summary.summary,
    "evidence-runs": tables.runs,
    "evidence-simulation": tables.simulation,
    "evidence-faults": tables.faults,
    "evidence-zoo": zoo_table.zoo,
    "evidence-recoveries": tables.recoveries,
    "evidence-models": tables.models,
    "evidence-chaos": tables.chaos,
    "evidence-campaign-calls": campaign_tables.calls,
    "evidence-campaign-damages": campaign_tables.damages,
    "evidence-campaign-damages-of-two": campaign_tables.damages_of_two,
    "evidence-campaign-environment": campaign_tables.environment,
    "evidence-failover": tables.failover,
    "evidence-calm": tables.calm,
    "evidence-kill-nine": tables.kill_nine,
    "evidence-rolling-restart": tables.rolling_restart,
    "evidence-attacks": tables.attacks,
    "evidence-relay": tables.relay,
    "evidence-silent-death": tables.silent_death,
    "evidence-tests": tables.counted_tests,
    "evidence-bench": tables.bench,
}


def render(entries: Mapping[str, Entry]) -> None:
    """Regenerate the pages; text between the generated parts is kept."""
    makers = {name: _maker(make, entries) for name, make in TABLES.items()}
    for page in PAGES:
        page.write_text(rendered(page.read_text(encoding="utf-8"), makers), encoding="utf-8")


def _maker(
    make: Callable[[Mapping[str, Entry]], str], entries: Mapping[str, Entry]
) -> Callable[[], str]:
    return lambda: make(entries)


MAKERS: dict[str, Callable[[], str]] = {
    name: (lambda make=make: make(load())) for name, make in TABLES.items()
}
"""The generated parts by name, for the test that compares documents with their sources."""
