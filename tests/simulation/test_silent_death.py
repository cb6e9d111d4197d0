"""A leader that falls silent costs one election, and every observer finds its successor."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorum.core.election import voting
from quorum.core.following import fetching, leader_search
from quorum.core.node import deadlines
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import InFlight
from quorum.types import NodeId
from simulation import silent_death
from simulation.silent_death import SITUATIONS, Death, Report, Situation, main, measured, problems

BY_NAME = {each.name: each for each in SITUATIONS}
NIGHTLY_DEATHS = 60


@pytest.mark.parametrize("name", ["idle", "idle, 20 ms apart", "distant observers"])
def test_a_few_deaths_cost_one_election_each(name: str) -> None:
    report = measured(BY_NAME[name], 2)
    assert problems([report]) == [], report


@pytest.mark.nightly
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.name)
def test_many_deaths_stay_within_the_bars(
    situation: Situation, record_property: Callable[[str, object], None]
) -> None:
    report = measured(situation, NIGHTLY_DEATHS)
    record_property(situation.name, str(silent_death.row_of(report)))
    assert problems([report]) == []


def test_timers_in_lockstep_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break it: equal fetch timers, and no candidate yields."""
    monkeypatch.setattr(
        CoreState, "random_fetch_timeout", lambda core: core.config.fetch_timeout_ms
    )
    monkeypatch.setattr(voting, "_goes_first", lambda core, request: False)
    found = problems([measured(BY_NAME["idle, 20 ms apart"], 4)])
    assert any("took a second election" in each for each in found)


def test_a_search_that_gives_way_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break it: a request for the leader is dropped when the silent leader may be asked again."""

    def drop(core: CoreState, flight: InFlight) -> None:
        del flight
        core.requests.end_flight()

    monkeypatch.setattr(fetching, "set_search_aside", drop)
    assert _misses_an_observer()


def test_bootstrap_servers_that_are_no_more_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break it: the voters of the own log are not asked beside the bootstrap servers."""

    def bootstrap_only(core: CoreState) -> tuple[NodeId, ...]:
        return core.following.bootstrap_servers or core.voters.latest.ids

    for module in (leader_search, deadlines):
        monkeypatch.setattr(module, "discovery_peers", bootstrap_only)
    assert _misses_an_observer()


def _misses_an_observer() -> bool:
    for seed in range(1, 9):
        found = problems([measured(BY_NAME["distant observers"], 1, seed)])
        if any("an observer found no leader" in each for each in found):
            return True
    return False


def test_every_bar_is_named() -> None:
    """Method: deaths at the bar and beyond it."""
    situation = BY_NAME["idle"]
    intact = Report(situation, [Death(3_000, 1)] * 19 + [Death(3_600, 2)])
    assert problems([intact]) == []
    late = Report(situation, [Death(3_001, 1)])
    split = Report(situation, [Death(2_000, 1)] * 9 + [Death(2_900, 2)])
    lost = Report(situation, [Death(2_000, 1, (2_500, -1))])
    never = Report(situation, [Death(-1, -1)])
    assert problems([late]) == ["idle: a median of 3001 ms, more than 3000"]
    assert problems([split]) == ["idle: 10.0% took a second election, more than 5%"]
    assert problems([lost]) == ["idle: an observer found no leader within 20000 ms"]
    assert len(problems([never])) == 2


def test_the_command_prints_a_line_for_each_situation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        silent_death, "measured", lambda situation, deaths: Report(situation, [Death(2_000, 1)])
    )
    assert main(["-n", "1"]) == 0
    assert capsys.readouterr().out.count("p50_ms 2000") == len(SITUATIONS)
    monkeypatch.setattr(
        silent_death, "measured", lambda situation, deaths: Report(situation, [Death(-1, -1)])
    )
    assert main(["-o", "json"]) == 1
