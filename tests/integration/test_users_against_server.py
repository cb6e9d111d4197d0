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


def test_a_password_is_no_argument_and_its_file_is_of_its_owner(node: Node, tmp_path: Path) -> None:
    status, _, err = node.run("user", "add", "alice")
    assert (status, "no terminal to ask" in err, "--new-password-file" in err) == (2, True, True)
    secret = tmp_path / "password"
    secret.write_text("pencil")
    secret.chmod(0o644)
    status, _, err = node.run("user", "add", "alice", "--new-password-file", str(secret))
    assert (status, "chmod 600 it" in err) == (2, True)
    status, _, err = node.run("user", "add", "alice", "--iterations", "4095")
    assert (status, "4096<=x<=16384" in err) == (2, True)
