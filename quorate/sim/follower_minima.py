"""The least of what those do who follow the log: watchers in every run, relays in some.

As in ``minima``: per hundred seeds, half of what the first showed, less of what is rare.
"""

from __future__ import annotations

from collections.abc import Mapping

WATCHED: Mapping[str, int] = {
    "watch_states": 250,
    "watch_changes": 9_000,
    "watch_resumes": 700,
    "watch_restarts": 60,
    "watch_cut_off": 25,
}
"""In every profile: watchers do the same whatever goes wrong."""

RELAYS: Mapping[str, int] = {
    **WATCHED,
    "leaders": 100,
    "installs": 200,
    "crashes": 400,
    "voter_changes": 5,
    "acknowledged": 4_800,
    "reads": 7_500,
    "relay_answers": 2_900,
    "relay_chains": 400,
    "relay_refusals": 40,
    "relay_reports": 3_800,
    "upstream_changes": 320,
    "crash-relay": 90,
    "isolate-relay": 120,
    "move-observer": 120,
    "pause-relay": 90,
}
"""The profile that is about them."""

RELAYS_AMONG_OTHERS: Mapping[str, int] = {
    "relay_answers": 250,
    "relay_reports": 250,
    "upstream_changes": 20,
    "crash-relay": 9,
    "isolate-relay": 9,
    "move-observer": 7,
    "pause-relay": 7,
}
"""Where a few of many runs have them."""
