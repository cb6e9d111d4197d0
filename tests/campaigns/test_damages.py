"""Damaged files of live nodes are repaired and reported, or refused; and the checks can fail."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.campaigns.damage_check import Outcome, Start, evaluated
from tests.campaigns.damages import NODES_OF, DamagesCampaign
from tests.campaigns.damages_cluster import damages_cluster
from tests.campaigns.file_damage import MANNERS, TOGETHER, Damage, Damager, write
from tests.campaigns.report import Report
from tests.integration.processes import Processes

SHORT_DAMAGES = 30
SHORT_OF_TWO = 24
DEFECT_DAMAGES = 24
WHOLE_DAMAGES = 400
MARK = Path("d/high-watermark")
SEGMENT = Path("d/00000000000000000000.log")
CHECKPOINT = Path("d/00000000000000000009-0000000001.checkpoint")
STATE = Path("d/quorum-state")


def start(damage: Damage, **given: object) -> Start:
    """Return a node that is ready although the damage is there, without a report."""
    plain = Start(
        lines=(), last_lines=(), exit_code=None, found={damage.path: damage.after},
        left={damage.path: damage.after}, was_clean=True,
    )  # fmt: skip
    return replace(plain, **given)  # type: ignore[arg-type]


def repaired(name: str) -> dict[str, object]:
    lines = (f"event=side_file_repaired file={name}",)
    return {"lines": lines, "last_lines": lines, "repaired_count": 1.0}


# ---------------------------------------------------------------- the checks can fail


@pytest.mark.parametrize(
    ("damage", "given", "outcome", "words"),
    [
        (Damage(MARK, "zero", b"m", b"\0"), repaired(MARK.name), Outcome.REPORTED, ""),
        (Damage(MARK, "zero", b"m", b"\0"), {"left": {MARK: b"m"}}, None, "without a report"),
        (
            Damage(MARK, "zero", b"m", b"\0"),
            {**repaired(MARK.name), "repaired_count": 0.0},
            None,
            "0 repairs are counted, 1 are logged",
        ),
        (Damage(SEGMENT, "flip", b"ab", b"ac"), {"left": {SEGMENT: b"ab"}}, None, "were restored"),
        (
            Damage(SEGMENT, "truncate", b"ab", b"a"),
            {"left": {SEGMENT: b"abc"}, "was_clean": False},
            Outcome.NO_EFFECT,
            "",
        ),
        (
            Damage(SEGMENT, "truncate", b"ab", b"a"),
            {"left": {SEGMENT: b"ab"}},
            None,
            "were restored",
        ),
        (
            Damage(SEGMENT, "zero", b"ab", b"\0\0"),
            {"left": {SEGMENT: b"ab"}, "lines": (f"event=log_damaged error={SEGMENT.name}",)},
            Outcome.REPORTED,
            "",
        ),
        (Damage(CHECKPOINT, "delete", b"c", None), {}, Outcome.NO_EFFECT, ""),
        (
            Damage(CHECKPOINT, "flip", b"c", b"d"),
            {"left": {CHECKPOINT: b"c"}},
            None,
            "was repaired",
        ),
        (Damage(STATE, "foreign", b"c", b"d"), {"left": {STATE: b"c"}}, None, "was accepted"),
        (
            Damage(STATE, "zero", b"c", b"\0"),
            {"exit_code": 8, "last_lines": ("quorum-state: checksum",)},
            Outcome.REFUSED,
            "",
        ),
        (
            Damage(STATE, "zero", b"c", b"\0"),
            {"exit_code": 1, "last_lines": ("quorum-state: checksum",)},
            None,
            "ended with 1",
        ),
        (Damage(STATE, "zero", b"c", b"\0"), {"exit_code": 8}, None, "names no damaged file"),
        (
            Damage(STATE, "zero", b"c", b"\0"),
            {"exit_code": 8, "last_lines": ("Traceback quorum-state",)},
            None,
            "traceback",
        ),
    ],
)
def test_silence_and_a_report_get_different_results(
    damage: Damage, given: dict[str, object], outcome: Outcome | None, words: str
) -> None:
    found, wrong = evaluated([damage], start(damage, **given))
    if words:
        assert any(words in each for each in wrong), wrong
    else:
        assert (found, wrong) == (outcome, [])


def test_every_manner_changes_a_file(tmp_path: Path) -> None:
    """A damage without effect would count as repaired."""
    done: Counter[str] = Counter()
    for seed in range(200):
        manner = (*MANNERS, *TOGETHER)[seed % (len(MANNERS) + len(TOGETHER))]
        folders = [tmp_path / f"{seed}-{each}" for each in ("own", "other")]
        for number, folder in enumerate(folders):
            (folder / "__cluster_metadata-0").mkdir(parents=True)
            write(folder / "meta.properties", f"node.id={number}".encode())
            for name in (SEGMENT.name, CHECKPOINT.name, MARK.name, "high-watermark-copy"):
                write(folder / "__cluster_metadata-0" / name, f"{number} {name} content".encode())
        faults = Damager(folders[0], folders[1:], random.Random(seed)).some(manner)
        assert faults
        for damage in faults:
            assert damage.before != damage.after, str(damage)
            assert (damage.path.read_bytes() if damage.path.exists() else None) == damage.after
        done[manner] += 1
    assert done.keys() == {*MANNERS, *TOGETHER}


def test_victims_are_a_minority_of_the_voters(tmp_path: Path) -> None:
    """If a majority were damaged, acknowledged writes could be lost, and no check could tell."""
    made = Processes(tmp_path, voters=3)
    with pytest.raises(ValueError, match="2 of 3 voters are not a minority"):
        DamagesCampaign(made, seed=1, damages=1, announce=lambda _: None, victims=2)
    for victims, nodes in NODES_OF.items():
        assert 2 * victims < nodes["voters"]


# ---------------------------------------------------------------- live clusters


def campaign(folder: Path, damages: int, defect: str = "", victims: int = 1) -> Report:
    with damages_cluster(folder, victims=victims, defect=defect) as made:
        run = DamagesCampaign(
            made,
            seed=secrets.randbits(32),
            damages=damages,
            announce=lambda _: None,
            victims=victims,
        )
        return asyncio.run(run.run())


@pytest.mark.long
@pytest.mark.integration
def test_a_short_campaign_loses_nothing(tmp_path: Path) -> None:
    report = campaign(tmp_path / "cluster", SHORT_DAMAGES)
    assert report.is_good, "\n".join(report.lines())


@pytest.mark.long
@pytest.mark.integration
def test_two_nodes_at_once_lose_nothing_in_a_short_campaign(tmp_path: Path) -> None:
    report = campaign(tmp_path / "cluster", SHORT_OF_TWO, victims=2)
    assert report.is_good, "\n".join(report.lines())


@pytest.mark.nightly
@pytest.mark.integration
def test_the_whole_campaign_loses_nothing(tmp_path: Path) -> None:
    report = campaign(tmp_path / "cluster", WHOLE_DAMAGES)
    assert report.is_good, "\n".join(report.lines())


@pytest.mark.long
@pytest.mark.integration
def test_unreported_repairs_are_noticed(tmp_path: Path) -> None:
    report = campaign(tmp_path / "cluster", DEFECT_DAMAGES, "repairs_unreported")
    assert any("without a report" in each for each in report.problems), "\n".join(report.lines())
