"""What is packaged is what is there, and every folder explains itself."""

from __future__ import annotations

import tomllib
from pathlib import Path

import quorate

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LISTED = set(PROJECT["tool"]["setuptools"]["packages"])
TOP = {name for name in LISTED if "." not in name}
NOT_PACKAGES = ("proto", "deploy", "tests", "docs")


def found_packages() -> set[str]:
    return {
        ".".join(file.parent.relative_to(ROOT).parts)
        for top in TOP
        for file in (ROOT / top).rglob("__init__.py")
    }


def test_every_package_is_listed_and_every_listed_one_exists() -> None:
    assert found_packages() == LISTED


def test_folders_of_python_files_are_packages() -> None:
    folders = {file.parent for top in TOP for file in (ROOT / top).rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_what_must_not_be_a_package_is_none() -> None:
    """`import proto` belongs to another distribution."""
    assert [name for name in NOT_PACKAGES if (ROOT / name / "__init__.py").exists()] == []


def test_top_level_packages_are_typed_and_described() -> None:
    for top in sorted(TOP):
        assert (ROOT / top / "py.typed").exists(), f"{top} lacks py.typed"
        assert (ROOT / top / "DESIGN.md").exists(), f"{top} lacks DESIGN.md"


def test_larger_packages_describe_themselves() -> None:
    """Sub-packages with a design of their own: more than a few files."""
    for name in sorted(LISTED - {"quorum.v1"}):
        folder = ROOT / name.replace(".", "/")
        if len(list(folder.glob("*.py"))) > 4:
            assert (folder / "DESIGN.md").exists(), f"{name} lacks DESIGN.md"


def test_versions_agree() -> None:
    assert quorate.__version__ == PROJECT["project"]["version"]


def test_the_change_log_knows_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {quorate.__version__}" in text or "## Unreleased" in text


def test_the_licence_is_there_and_is_packaged() -> None:
    """The wheel carries it in its ``dist-info``; that needs this setting and this setuptools."""
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert PROJECT["project"]["license-files"] == ["LICENSE"]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "setuptools>=77" in PROJECT["build-system"]["requires"]
