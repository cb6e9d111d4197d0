"""Minima of clients and nodes that follow the log: watchers, consumers, and relays in some runs.

As in ``minima``: per hundred seeds, half of what was seen, less of what is rare.
"""

from __future__ import annotations

from collections.abc import Mapping

WATCHED: Mapping[str, int] = {
    "watch_states": 230,
    "watch_changes": 15_700,
    "watch_resumes": 1_000,
    "watch_restarts": 57,
    "watch_cut_off": 15,
    "log_batches": 2_000,
    "log_lookups": 25,
    "log_resets": 6,
}
"""Apply to every profile: watchers and consumers behave alike under all faults."""

RELAYS: Mapping[str, int] = {
    **WATCHED,
    "leaders": 88,
    "installs": 200,
    "crashes": 270,
    "voter_changes": 5,
    "acknowledged": 5_700,
    "reads": 7_900,
    "relay_answers": 3_300,
    "relay_chains": 700,
    "relay_refusals": 77,
    "relay_reports": 4_400,
    "upstream_changes": 290,
    "crash-relay": 110,
    "isolate-relay": 130,
    "move-observer": 110,
    "pause-relay": 91,
}
"""For the profile of relay faults."""

RELAYS_AMONG_OTHERS: Mapping[str, int] = {
    "relay_answers": 470,
    "relay_reports": 550,
    "upstream_changes": 42,
    "crash-relay": 5,
    "isolate-relay": 5,
    "move-observer": 5,
    "pause-relay": 5,
}
"""For profiles in which few runs have relays."""
