"""Which commit this one is compared with, in clones of every kind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import last_release
from tests.support.last_release import CHOICE, checkout, file_at, names_below


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three commits of a repository in which each wrote its number; none is a release yet."""
    monkeypatch.delenv(CHOICE, raising=False)
    monkeypatch.setattr(last_release, "ROOT", tmp_path)
    git(tmp_path, "init", "--quiet")
    found = []
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "inner" / "file").write_text("not listed")
    for number in range(3):
        (tmp_path / "folder" / "file").write_text(str(number))
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "--quiet", "-m", str(number))
        found.append(git(tmp_path, "rev-parse", "HEAD"))
    monkeypatch.setattr(last_release, "BEFORE_THE_FIRST", found[0])
    return found


def git(folder: Path, *arguments: str) -> str:
    me = ("-c", "user.name=test", "-c", "user.email=test@test")
    command = ["git", "-C", str(folder), *me, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_named_commit_until_there_is_a_tag(commits: list[str]) -> None:
    assert last_release.last_release() == commits[0]


def test_the_newest_tag_before_this_commit(commits: list[str]) -> None:
    folder = last_release.ROOT
    git(folder, "tag", "v0.1.0", commits[1])
    git(folder, "tag", "-a", "-m", "this one", "v0.2.0", commits[2])
    git(folder, "tag", "other", commits[0])
    assert last_release.last_release() == commits[1], "a release is not its own predecessor"


def test_the_environment_names_any_other(
    commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git(last_release.ROOT, "tag", "v0.1.0", commits[1])
    monkeypatch.setenv(CHOICE, commits[2][:10])
    assert last_release.last_release() == commits[2]


def test_a_clone_that_lacks_the_commit_says_what_to_do(
    commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del commits
    monkeypatch.setattr(last_release, "BEFORE_THE_FIRST", "0" * 40)
    with pytest.raises(AssertionError, match=f"git fetch --unshallow.*{CHOICE}"):
        last_release.last_release()


def test_a_shallow_clone_has_no_last_release(
    commits: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del commits
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", tmp_path.as_uri(), str(shallow))
    monkeypatch.setattr(last_release, "ROOT", shallow)
    with pytest.raises(pytest.skip.Exception, match="shallow"):
        last_release.last_release()


def test_files_without_git_have_no_last_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_release, "ROOT", tmp_path)
    with pytest.raises(pytest.skip.Exception, match="no clone"):
        last_release.last_release()


def test_files_of_a_commit(commits: list[str], tmp_path: Path) -> None:
    assert file_at(commits[1], "folder/file") == "1"
    assert names_below(commits[1], "folder") == ["folder/file", "folder/inner"]
    out = tmp_path / "out"
    out.mkdir()
    checkout(commits[1], out)
    assert (out / "folder" / "file").read_text() == "1"
    assert (out / "folder" / "inner" / "file").exists()
