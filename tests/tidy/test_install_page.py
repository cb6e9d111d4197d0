"""The installation page is true: it has every extra, and the wheel has the name that it gives."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.tidy.test_lock import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations" / "install.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOR_DEVELOPERS = {"dev"}


def test_the_page_explains_every_extra() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rows == set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS


def test_what_an_extra_brings_is_what_it_asks_for() -> None:
    """Each distribution that the table names is one of that extra."""
    for name, brings in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE):
        wanted = " ".join(PROJECT["optional-dependencies"][name]).lower()
        named = re.findall(r"[a-z][a-z0-9]+", brings.lower())
        assert any(word in wanted for word in named), (name, brings)


def test_the_wheel_has_the_version_of_the_project() -> None:
    names = set(re.findall(r"quorate-[\d.]+-py3-none-any\.whl", PAGE))
    assert names == {f"quorate-{PROJECT['version']}-py3-none-any.whl"}


def test_the_image_has_the_extras_that_the_page_says() -> None:
    (line,) = re.findall(r"The image has ([^.]+)\.", PAGE)
    assert set(re.findall(r"`(\w+)`", line)) == set(EXTRAS)


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda path: path.name)
def test_no_page_installs_from_an_index_without_an_extra(page: Path) -> None:
    """Nothing is published. With an extra, pip takes the Quorate that is installed already."""
    if page.name == "install.md":
        return
    text = page.read_text("utf-8")
    assert not re.search(
        r"pip install (?:-U |--upgrade )?'?quorate(?:-client)?'?(?![\[\w/.-])", text
    )


def test_no_page_sends_readers_to_an_index() -> None:
    """Whatever has our name there is not ours."""
    pages = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md"))
    assert not [each.name for each in pages if "pypi.org/project" in each.read_text("utf-8")]
