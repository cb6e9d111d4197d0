"""Collects every ``.scn`` file as one test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from simulation.scenario.coverage import Coverage
from simulation.scenario.grammar import ScenarioError
from simulation.scenario.runner import run_file

SHOWN = pytest.StashKey[Coverage]()
RUN = pytest.StashKey[set[Path]]()
"""What the scenarios of this session have shown, and which have run."""


class ScenarioDiffers(Exception):  # noqa: N818 - reads as the sentence it is
    """The outputs of a scenario differ from its file."""


class ScenarioItem(pytest.Item):
    """One scenario."""

    def runtest(self) -> None:
        rewrite = bool(self.config.getoption("--rewrite"))
        stash = self.config.stash
        differences = run_file(self.path, rewrite=rewrite, coverage=stash[SHOWN])
        stash[RUN].add(self.path)
        if differences and not rewrite:
            raise ScenarioDiffers("\n\n".join(each.text(self.path) for each in differences))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        if isinstance(excinfo.value, ScenarioDiffers | ScenarioError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, 0, self.name


class ScenarioFile(pytest.File):
    """A ``.scn`` file."""

    def collect(self) -> Iterable[ScenarioItem]:
        yield ScenarioItem.from_parent(self, name=self.path.stem)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SHOWN], config.stash[RUN] = Coverage(), set()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The coverage comes last, so that it need not run every scenario once more."""
    items.sort(key=lambda each: each.path.name == "test_coverage.py")


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> ScenarioFile | None:
    if file_path.suffix == ".scn":
        return ScenarioFile.from_parent(parent, path=file_path)
    return None
