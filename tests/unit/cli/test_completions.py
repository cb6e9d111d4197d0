"""Every argument that names something which exists can be completed, and nothing else is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from quorate.cli import completions
from quorate.cli.main import cli, main


def offered(*words: str, incomplete: str = "") -> list[str]:
    complete = ShellComplete(cli, {}, "quorate", "_QUORATE_COMPLETE")
    return [each.value for each in complete.get_completions(list(words), incomplete)]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("QUORATE_BOOTSTRAP", raising=False)


def test_contexts(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("prod", "preview", "test"):
        assert main(["context", "add", name, "--bootstrap", "n1:9190"]) == 0
    capsys.readouterr()
    assert offered("context", "use", incomplete="pr") == ["preview", "prod"]
    assert offered("topic", "list", "--context", incomplete="t") == ["test"]
    assert offered("context", "add", incomplete="pr") == [], "a new name"


def test_settings_of_a_node() -> None:
    found = offered("server", "--set", incomplete="metrics.")
    assert {"metrics.listen=", "metrics.tls="} <= set(found)
    assert all(each.startswith("metrics.") for each in found)


def test_keys_of_a_configuration_by_its_type() -> None:
    found = offered("config", "set", "topic", "orders", incomplete="retention.")
    assert found == ["retention.bytes=", "retention.ms="]
    assert offered("config", "delete", "topic", "orders", incomplete="retention.m") == [
        "retention.ms"
    ]
    assert "log.retention.ms=" in offered("config", "set", "broker", "", incomplete="log.ret")
    assert "metrics=" in offered("config", "append", "client-metrics", "c", incomplete="me")


def test_features() -> None:
    assert "metadata.version=" in offered("feature", "upgrade", incomplete="meta")


class Seen:
    """Stands in for a cluster: the words that a shell would be offered, and what was asked."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def ask(self, *_: object) -> list[str]:
        return list(self.names)


CLUSTER_WORDS = {
    "topic": ("describe", "delete", "add-partitions", "elect-leaders"),
    "broker": ("describe", "fence-status", "unregister", "cordon", "uncordon", "assign"),
    "user": ("describe", "remove"),
    "quorum": ("may-stop", "transfer-leader", "remove-voter", "update-voter", "add-voter"),
}


@pytest.mark.parametrize(
    ("noun", "verb"), [(noun, verb) for noun, verbs in CLUSTER_WORDS.items() for verb in verbs]
)
def test_what_a_cluster_has(monkeypatch: pytest.MonkeyPatch, noun: str, verb: str) -> None:
    monkeypatch.setattr(completions, "_ask", Seen("12", "13", "orders").ask)
    assert offered(noun, verb, incomplete="1") == ["12", "13"]
    assert offered(noun, verb, incomplete="o") == ["orders"]


def test_the_resource_of_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "_ask", Seen("orders").ask)
    assert offered("config", "get", "topic", incomplete="or") == ["orders"]
    assert offered("config", "get", "group", incomplete="or") == ["orders"]
    assert offered("config", "get", "client-metrics", incomplete="or") == []


def test_principals_and_resources_of_an_acl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "_ask", Seen("ann", "app").ask)
    assert offered("acl", "add", incomplete="User:a") == ["User:ann", "User:app"]
    assert offered("acl", "add", incomplete="") == ["User:*", "User:ann", "User:app"]
    assert offered("acl", "list", "--principal", incomplete="User:an") == ["User:ann"]
    for option in ("--topic", "--group", "--user"):
        assert offered("acl", "add", "User:ann", option, incomplete="ap") == ["app"]
        assert offered("acl", "remove", option, incomplete="ap") == ["app"]
    assert offered("acl", "add", "User:ann", "--transactional-id", incomplete="a") == []


def test_without_a_cluster_nothing_is_offered_nor_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert offered("topic", "describe", incomplete="o") == []
    assert offered("--bootstrap", "127.0.0.1:1", "broker", "describe") == []
    assert capsys.readouterr() == ("", "")


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Argument]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from leaves(inner, (*path, name))
        return
    for each in command.params:
        if isinstance(each, click.Argument):
            yield " ".join(path), each


NEW = {"topic create", "broker register", "context add", "user add", "broker-agent"}
"""What names something that does not exist yet."""


def test_no_argument_that_names_something_is_forgotten() -> None:
    forgotten = [
        f"{path} {each.name}"
        for path, each in leaves(cli)
        if each.name in ("name", "names", "node", "broker_id", "keys", "principal")
        and path.split()[0] in ("topic", "broker", "quorum", "config", "context", "user", "acl")
        and path not in NEW
        and each._custom_shell_complete is None
    ]
    assert forgotten == []


def test_the_help_has_one_line_for_each_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for shell in ("bash:", "zsh:", "fish:"):
        assert [line for line in lines if line.startswith(shell)], lines
    assert not any("\\b" in line for line in lines)
