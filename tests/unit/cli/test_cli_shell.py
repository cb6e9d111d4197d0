"""``quorate shell``: paths, commands, documents and exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.main import main
from quorate.timetravel.entities import entities
from quorate.timetravel.positions import state_at
from quorate.timetravel.shell import Shell
from quorate.timetravel.tree import ImageTree, NoSuchPathError, part_text, resolve
from statemachine.records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    TransactionalIdRecord,
)
from tests.support.audit_log import AuditLog
from tests.support.kafka_directory import whole_sample


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.command(TopicRecord("orders", b"o" * 16), principal="User:ann", reason="shop")
    log.command(
        PartitionRecord(0, b"o" * 16, replicas=(1,), isr=(1,), leader=1), principal="User:ann"
    )
    log.command(ConfigRecord(2, "orders", "retention.ms", "1"), principal="User:bob")
    log.command(TransactionalIdRecord("a/b", 7, 0), principal="User:ann")
    log.command(TopicRecord("..", b"d" * 16), principal="User:ann")
    log.commit()
    return log


@pytest.fixture
def shell(log: AuditLog) -> Shell:
    return Shell(state_at(log.home))


def lines(shell: Shell, line: str) -> list[str]:
    answer = shell.run(line)
    assert answer is not None
    assert answer.lines is not None
    return list(answer.lines)


def test_every_entity_has_a_path_of_its_own(log: AuditLog) -> None:
    """Goal: nothing of an image cannot be reached, whatever its name is."""
    image = state_at(log.home).image
    tree = ImageTree(image)
    found = [tree.entity(path) for path, is_folder in tree.walk(()) if not is_folder]
    assert found == list(entities(image))
    for entity in entities(image):
        path = (entity.kind, *map(part_text, entity.parts))
        assert resolve("/" + "/".join(path), ("topic",)) == path
        assert tree.entity(path) == entity


def test_names_that_mean_something_else_in_a_path(shell: Shell) -> None:
    assert lines(shell, "ls /topic") == ["%2E%2E", "orders"]
    assert lines(shell, "ls transactional-id") == ["a%2Fb"]


def test_walking_around(shell: Shell) -> None:
    assert lines(shell, "ls") == ["topic/", "partition/", "config/", "transactional-id/"]
    assert lines(shell, "cd config/topic:orders") == ["/config/topic:orders"]
    assert shell.prompt.endswith(":/config/topic:orders> ")
    assert lines(shell, "ls") == ["retention.ms"]
    answer = shell.run("cat retention.ms")
    assert answer is not None
    assert (answer.kind, answer.fields["kind"], answer.fields["value"]) == ("Entity", "config", "1")
    assert lines(shell, "ls ../../partition") == ["orders/"]
    assert lines(shell, "cd") == ["/"]
    assert lines(shell, "find 'reten*'") == ["/config/topic:orders/retention.ms"]
    assert lines(shell, "find '/part*/0'") == ["/partition/orders/0"]
    assert lines(shell, "tree /partition") == ["/partition", "  orders/", "    0"]
    assert lines(shell, "tree / 1")[1] == "  topic/"
    assert shell.run("  ") is None


def test_who_changed_an_entity(shell: Shell) -> None:
    answer = shell.run("log /topic/orders")
    assert answer is not None
    assert answer.rows is not None
    (row,) = answer.rows
    assert (row["principal"], row["reason"]) == ("User:ann", "shop")


def test_another_moment_of_the_same_source(log: AuditLog) -> None:
    log.command(RemoveTopicRecord(b"o" * 16), principal="User:eve")
    log.commit()
    shell = Shell(state_at(log.home))
    with pytest.raises(NoSuchPathError, match="there is no /topic/orders"):
        shell.run("cat /topic/orders")
    shell.run("at 4")
    assert lines(shell, "ls /topic") == ["orders"]
    shell.run("cd /config")
    shell.run("at 2")
    assert shell.path == (), "there is no such folder in that state"
    shell.run("at")
    assert lines(shell, "ls /topic") != ["orders"]


def test_a_comment_is_passed_over(shell: Shell) -> None:
    assert shell.run("  # ls") is None
    assert lines(shell, "ls '#'/../topic") == ["%2E%2E", "orders"]


def test_changes_that_were_trimmed_are_said_to_be_unknown(log: AuditLog) -> None:
    log.log.advance_start(log.checkpoint())
    begin = log.end
    log.command(ConfigRecord(2, "orders", "retention.ms", "2"), principal="User:eve")
    log.commit()
    answer = Shell(state_at(log.home)).run("log /config/topic:orders/retention.ms")
    assert answer is not None
    assert answer.fields["known_from_offset"] == begin
    assert [row["principal"] for row in answer.rows or ()] == ["User:eve"]


def test_completion(shell: Shell) -> None:
    assert shell.completions("c", is_command=True) == ["cd", "cat"]
    assert shell.completions("/to", is_command=False) == ["/topic/"]
    assert shell.completions("/config/topic:orders/r", is_command=False) == [
        "/config/topic:orders/retention.ms"
    ]
    assert shell.completions("/nothing/r", is_command=False) == []


@pytest.mark.parametrize(
    ("line", "status", "says"),
    [
        ("cat /topic/none", 4, "there is no /topic/none"),
        ("cat /topic/order", 4, "did you mean /topic/orders?"),
        ("ls topics", 4, "did you mean /topic?"),
        ("cat /topic/orders/0", 4, "/topic/orders is no folder"),
        ("cd /topic/orders", 4, "is no folder"),
        ("cat /topic", 2, "is a folder"),
        ("log /topic", 2, "is a folder"),
        ("cat", 2, "usage: cat PATH..."),
        ("tree / x", 2, "'x' is no number of levels"),
        ("lss", 2, "did you mean ls?"),
        ("rm /topic/orders", 2, "commands: ls, cd"),
        ("at 99", 4, "99"),
        ("at soon", 2, "is no time"),
        ("cat 'x", 2, "cannot read the line"),
    ],
)
def test_refusals(
    log: AuditLog,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    status: int,
    says: str,
) -> None:
    """A line from standard input that fails ends the command; lines behind it do not run."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"pwd\n{line}\nls\n"))
    assert main(["shell", str(log.home)]) == status
    captured = capsys.readouterr()
    assert captured.out == "/\n"
    assert says in captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_one_command_for_programs(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    home = str(log.home)
    found = document(capsys, "shell", home, "ls", "/topic")
    assert found["kind"] == "Names"
    assert {"name": "orders"} in found["rows"]
    found = document(capsys, "shell", home, "cat", "/topic/orders", "/partition/orders/0")
    assert [row["path"] for row in found["rows"]] == ["/topic/orders", "/partition/orders/0"]
    found = document(capsys, "shell", home, "--at-offset", "2", "ls")
    assert [row["name"] for row in found["rows"]] == ["topic/"]
    assert document(capsys, "shell", home, "help")["kind"] == "Commands"


def test_a_directory_of_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = whole_sample(tmp_path)
    found = document(capsys, "shell", str(source), "tree", "/", "1")
    assert {"path": "/broker", "is_folder": True} in found["rows"]
