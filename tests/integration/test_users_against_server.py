"""``quorate user`` against one real node: passwords from files, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.lone_node import Node

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node"), "native")
    try:
        yield node
    finally:
        assert node.stop() == 0


def test_users(node: Node, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("pencil\n")
    secret.chmod(0o600)
    new = ("--new-password-file", str(secret))
    assert node.ask("user", "add", "alice", *new, "--dry-run")["dry_run"] is True
    assert node.ask("user", "list")["rows"] == []
    added = node.ask("user", "add", "alice", *new, "--mechanism", "SCRAM-SHA-256")
    assert added["mechanisms"] == ["SCRAM-SHA-256"]
    status, _, err = node.run("user", "add", "alice", *new)
    assert (status, "--replace changes the password" in err) == (5, True)
    node.ask("user", "add", "alice", *new, "--replace", "--iterations", "8192")
    node.ask("user", "add", "bob", *new)
    shown = [{"name": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 8192}]
    assert node.ask("user", "describe", "alice")["rows"] == shown
    assert [each["name"] for each in node.ask("user", "list")["rows"]] == ["alice", "bob"]
    node.ask("user", "remove", "bob", "--yes", "--reason", "left")
    for verb in ("describe", "remove"):
        status, _, err = node.run("user", verb, "bob", *(["--yes"] if verb == "remove" else []))
        assert (status, "no such user: bob" in err) == (4, True)
    node.ask("user", "remove", "alice", "--yes")
    assert node.ask("user", "list")["rows"] == []


def test_a_repeated_change_gets_its_first_answer(node: Node, tmp_path: Path) -> None:
    """Goal: whatever was done to the user since, and also a refusal (360.8)."""
    secret = tmp_path / "password"
    secret.write_text("pencil\n")
    secret.chmod(0o600)

    def step(request_id: str, *words: str) -> tuple[int, str, str]:
        return node.run(*words, "--writer", "users", "--request-id", request_id, "-o", "json")

    new = ("user", "add", "carol", "--new-password-file", str(secret))
    weak = (*new, "--mechanism", "SCRAM-SHA-256", "--replace")
    status, _, err = step("1", *new)
    assert (status, "--request-id needs --replace here" in err) == (2, True), err
    first = step("1", *weak)
    assert first[0] == 0, first[2]
    second = step("2", *new, "--replace")
    assert [each["mechanism"] for each in node.ask("user", "describe", "carol")["rows"]] == [
        "SCRAM-SHA-512"
    ]
    removed = step("3", "user", "remove", "carol", "--yes")
    assert removed[0] == 0, removed[2]
    missing = step("4", "user", "remove", "carol", "--yes")
    assert (missing[0], "no such user: carol" in missing[2]) == (4, True)
    node.ask(*new)
    assert step("1", *weak) == first
    assert step("2", *new, "--replace") == second
    assert step("3", "user", "remove", "carol", "--yes") == removed
    assert step("4", "user", "remove", "carol", "--yes") == missing
    assert len(node.ask("user", "describe", "carol")["rows"]) == 1, "nothing was applied again"
    secret.write_text("another\n")
    status, _, err = step("2", *new, "--replace")
    assert (status, "for another command" in err) == (2, True), err
    node.ask("user", "remove", "carol", "--yes")


def test_a_password_is_no_argument_and_its_file_is_of_its_owner(node: Node, tmp_path: Path) -> None:
    status, _, err = node.run("user", "add", "alice")
    assert (status, "no terminal to ask" in err, "--new-password-file" in err) == (2, True, True)
    secret = tmp_path / "password"
    secret.write_text("pencil")
    secret.chmod(0o644)
    status, _, err = node.run("user", "add", "alice", "--new-password-file", str(secret))
    assert (status, "chmod 600 it" in err) == (2, True)
    status, _, err = node.run("user", "add", "alice", "--iterations", "4095")
    assert (status, "from 4096 to 16384" in err) == (2, True)
