"""A usable Java is found or installed; without one the error names the package."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from audit.errors import AuditError
from audit.java import find_java_home, java_version, make_launcher


def fake_java(home: Path, version: str, *, body: str = "") -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    answer = f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"
    java.write_text(f"#!/bin/sh\n{body or answer}\n", encoding="utf-8")
    java.chmod(0o755)
    return home


def nothing() -> None:
    return None


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a", "21.0.1")
    other = fake_java(tmp_path / "b", "17.0.15")
    environment = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    assert find_java_home(environment, tmp_path / "cache", bundled=nothing) == home


def test_an_old_java_home_gives_way_to_the_path(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "a", "1.8.0_392")
    good = fake_java(tmp_path / "b", "17")
    environment = {"JAVA_HOME": str(old), "PATH": str(good / "bin")}
    assert java_version(old / "bin" / "java") == 8
    assert find_java_home(environment, tmp_path / "cache", bundled=nothing) == good


def test_a_link_on_the_path_leads_to_its_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "25")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    environment = {"PATH": str(tmp_path / "bin")}
    assert find_java_home(environment, tmp_path / "cache", bundled=nothing) == home


def test_the_bundled_runtime_is_used_when_nothing_is_installed(tmp_path: Path) -> None:
    runtime = fake_java(tmp_path / "run time's", "21", body='printf "%s\\n" "$@"')
    home = find_java_home({}, tmp_path / "cache", bundled=lambda: runtime)
    assert home.is_relative_to(tmp_path / "cache")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "", "Main"]
    answer = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split("\n")[:-1] == ["-Xmx1g", "-cp", "a b", "", "Main"]


def test_the_launcher_is_made_once_and_renewed_when_the_runtime_moves(tmp_path: Path) -> None:
    first = make_launcher(tmp_path / "one", tmp_path / "cache") / "bin" / "java"
    made = first.stat().st_ino
    assert (
        make_launcher(tmp_path / "one", tmp_path / "cache") / "bin" / "java"
    ).stat().st_ino == made
    make_launcher(tmp_path / "two", tmp_path / "cache")
    assert str(tmp_path / "two") in first.read_text(encoding="utf-8")
    assert [path.name for path in first.parent.iterdir()] == ["java"]


def test_without_any_java_the_error_names_the_extra(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "a", "11.0.2")
    broken = fake_java(tmp_path / "b", "17", body="exit 1")
    environment = {"JAVA_HOME": str(old), "PATH": str(broken / "bin")}
    with pytest.raises(AuditError) as caught:
        find_java_home(environment, tmp_path / "cache", bundled=nothing)
    message = str(caught.value)
    assert "quorate[spark]" in message
    assert "Java 11" in message
    assert "no usable Java" in message


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    with pytest.raises(AuditError, match="java-home"):
        make_launcher(tmp_path / "one", tmp_path / "cache")
