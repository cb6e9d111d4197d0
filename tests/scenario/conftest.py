"""Collects every ``.scn`` file as one test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from simulation.scenario.grammar import ScenarioError
from simulation.scenario.runner import run_file


class ScenarioDiffers(Exception):  # noqa: N818 - reads as the sentence it is
    """The outputs of a scenario are not what its file says."""


class ScenarioItem(pytest.Item):
    """One scenario."""

    def runtest(self) -> None:
        rewrite = bool(self.config.getoption("--rewrite"))
        differences = run_file(self.path, rewrite=rewrite)
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


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> ScenarioFile | None:
    if file_path.suffix == ".scn":
        return ScenarioFile.from_parent(parent, path=file_path)
    return None
