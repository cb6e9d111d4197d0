"""Every numeric setting has a minimum and a maximum; contradictory settings are reported."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.config.load import load_config
from quorate.config.sections import LimitsConfig, NodeConfig, RelayConfig
from quorate.config.server_config import ServerConfig
from quorate.config.settings import Setting, settings
from quorum.config import QuorumConfig
from quorum.errors import ConfigError
from quorum.setting import COUNT_MAX, Range, out_of_range
from snapshot.config import SnapshotConfig

VALID = ServerConfig(node=NodeConfig(id=1, data_dir=Path("data")))
MINIMAL = ("node.id=1", "node.data_dir=data")
NUMBERS = {key: each for key, each in settings().items() if each.kind in (int, float)}


def problems_of(*flags: str) -> list[str]:
    """Return the problems of these settings; empty when there are none."""
    try:
        load_config(flags=(*MINIMAL, *flags))
    except ConfigError as error:
        return error.problems
    return []


def test_every_number_has_a_range_and_nothing_else_has() -> None:
    assert {key for key, each in settings().items() if each.declared.range} == set(NUMBERS)


@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_beyond_either_end_is_refused_by_name(key: str) -> None:
    """Goal: nothing starts that fails later. Method: one beyond, and far beyond."""
    found = NUMBERS[key].declared.range
    assert found is not None
    beyond = [found.most + 1, 10**22, 10**60]
    if not NUMBERS[key].is_optional:
        beyond.append(found.least - 1)
    for value in beyond:
        assert any(
            problem.startswith(f"{key} must be ") for problem in problems_of(f"{key}={value}")
        )


@pytest.mark.parametrize("key", NUMBERS)
def test_both_ends_are_inside(key: str) -> None:
    """Method: complaints about other relations may remain, none about the range."""
    found = NUMBERS[key].declared.range
    assert found is not None
    for value in found:
        for problem in problems_of(f"{key}={value}"):
            assert not re.match(rf"{key} must be at (least|most) \d", problem), problem


def test_the_defaults_are_inside() -> None:
    def is_inside(each: Setting) -> bool:
        value, found = each.default, each.declared.range
        assert found is not None
        return not isinstance(value, int | float) or not found.problem(each.key, value)

    assert [key for key, each in NUMBERS.items() if not is_inside(each)] == ["node.id"]
    VALID.validate()


def test_all_problems_are_reported_at_once() -> None:
    flags = [f"{key}={10**22}" for key in NUMBERS if key != "node.id"]
    all_problems = "\n".join(problems_of(*flags))
    assert [
        key for key in NUMBERS if key != "node.id" and f"{key} must be at most" not in all_problems
    ] == []


def test_a_number_of_ten_thousand_digits_is_a_mistake_like_others(tmp_path: Path) -> None:
    """Method: a hexadecimal one, which TOML takes, and which cannot be shown."""
    file = tmp_path / "node.toml"
    file.write_text(f"[quorum]\nelection_timeout_ms = 0x{'f' * 10_000}\n")
    with pytest.raises(ConfigError, match=r"quorum\.election_timeout_ms must be a number of at"):
        load_config(file, flags=MINIMAL)


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"fetch_max_wait_ms": 2000, "request_timeout_ms": 3000}, "an idle leader looks dead"),
        ({"request_timeout_ms": 300}, "answers to held fetches time out"),
        ({"request_timeout_ms": 599}, "answers to held fetches time out"),
        ({"observer_session_ms": 500}, "counts as gone while its Fetch is held"),
    ],
)
def test_timings_of_the_quorum_that_contradict_each_other(
    settings_: dict[str, int], words: str
) -> None:
    (problem,) = replace(QuorumConfig(), **settings_).problems()
    assert words in problem


def test_timings_that_just_agree() -> None:
    config = QuorumConfig(request_timeout_ms=600, observer_session_ms=501, fetch_timeout_ms=501)
    assert config.problems() == []
    assert QuorumConfig(fetch_max_wait_ms=0, request_timeout_ms=1).problems() == []


def test_timings_of_two_sections_that_contradict_each_other() -> None:
    """Both problems are reported at once, the lease and the chain of relays."""
    config = replace(
        VALID,
        relay=RelayConfig(enable=True),
        quorum=QuorumConfig(relay_age_max_ms=2499),
        snapshot=SnapshotConfig(lease_ms=1999),
    )
    chain, lease = config.problems()
    assert chain.startswith("quorum.relay_age_max_ms must be at least")
    assert lease.startswith("snapshot.lease_ms (1999) must be at least quorum.request_timeout_ms")
    fine = replace(
        config,
        quorum=QuorumConfig(relay_age_max_ms=2500),
        snapshot=SnapshotConfig(lease_ms=2000),
    )
    assert fine.problems() == []


def test_a_range_has_both_its_ends() -> None:
    limits = LimitsConfig(watches_max=COUNT_MAX + 1, unary_calls_max=0)
    assert limits.problems() == [
        f"limits.watches_max must be at most {COUNT_MAX}, not {COUNT_MAX + 1}",
        "limits.unary_calls_max must be at least 1, not 0",
    ]
    assert Range(0, 1).problem("share", float("nan")) == "share must be at most 1, not nan"
    assert out_of_range(SnapshotConfig(interval_ms=None)) == []
