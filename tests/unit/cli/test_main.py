"""The entry point: shared options anywhere, lazy commands, errors as one line and a status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from quorate import __version__
from quorate.cli import command as command_module
from quorate.cli.command import SessionCommand
from quorate.cli.main import VERBS, cli, main
from quorate.cli.session import Session
from quorum.errors import InvariantViolation


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize("arguments", [("-o", "json", "version"), ("version", "-o", "json")])
def test_shared_options_may_come_before_or_after_the_command(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert json.loads(out)["quorate"] == __version__


def test_the_version_is_an_option_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"quorate {__version__}\n", "")


def test_the_later_option_wins(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "-o", "table", "random-uuid", "-o", "json")
    assert len(json.loads(out)["uuid"]) == 22


_REACHING = {
    "acl", "broker", "broker-agent", "console", "feature", "health", "import", "quorum", "topic",
    "top", "user", "watch",
}  # fmt: skip
_TAKING = {("backup", "create"), ("context", "add"), ("snapshot", "now")}
"""What takes the options though its noun reaches no cluster."""
_CONFIG_REACHING = {"get", "set", "append", "subtract", "delete"}


def leaves() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command of the whole tree with its words."""

    def below(
        words: tuple[str, ...], found: click.Command
    ) -> Iterator[tuple[tuple[str, ...], click.Command]]:
        if not isinstance(found, click.Group):
            yield words, found
            return
        context = click.Context(found)
        for name in found.list_commands(context):
            inner = found.get_command(context, name)
            assert inner is not None
            yield from below((*words, name), inner)

    return below((), cli)


def test_only_cluster_commands_take_cluster_options() -> None:
    """An option that is parsed and not honoured is a promise that is not kept."""
    found = dict(leaves())
    assert len(found) > 40
    for words, command in found.items():
        options = {name for each in command.params for name in each.opts}
        reaches = (
            words in _TAKING
            or words[0] in _REACHING
            or (words[0] == "config" and words[1] in _CONFIG_REACHING)
        )
        for option in (
            "--bootstrap",
            "--timeout",
            "--tls-ca",
            "--tls-cert",
            "--tls-key",
            "--context",
        ):
            assert (option in options) == reaches, (words, option)
        if words != ("sim", "scenario"):
            assert {"-o", "--quiet", "--no-color"} <= options, words


def test_a_cluster_option_on_a_local_command_is_refused_or_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment may always name a cluster: there is no warning about it."""
    assert run(capsys, "random-uuid", "--timeout", "1")[0] == 2
    status, _, err = run(capsys, "--timeout", "1", "--bootstrap", "n1:1", "random-uuid")
    assert status == 0
    assert err == "note: --bootstrap, --timeout not used: quorate random-uuid reaches no cluster\n"
    assert run(capsys, "--timeout", "1", "--quiet", "random-uuid")[2] == ""
    monkeypatch.setenv("QUORATE_BOOTSTRAP", "n1:9190")
    assert run(capsys, "random-uuid")[2] == ""


def test_completion_does_not_offer_what_has_no_meaning() -> None:
    complete = ShellComplete(cli, {}, "quorate", "_QUORATE_COMPLETE")
    assert complete.get_completions(["sim", "run"], "--t") == []
    assert [each.value for each in complete.get_completions(["topic", "list"], "--time")] == [
        "--timeout"
    ]


_SHARED = [
    ("bootstrap", "127.0.0.1:1", ("127.0.0.1:1",)),
    ("tls-ca", "written.pem", Path("written.pem")),
    ("tls-cert", "written.pem", Path("written.pem")),
    ("tls-key", "written.pem", Path("written.pem")),
    ("timeout", "3", 3.0),
    ("output", "json", "json"),
]


@pytest.mark.parametrize("is_at_root", [True, False])
@pytest.mark.parametrize(("option", "text", "value"), _SHARED)
def test_a_written_option_wins_over_the_environment(
    monkeypatch: pytest.MonkeyPatch, option: str, text: str, value: object, *, is_at_root: bool
) -> None:
    """Goal: no command reaches another cluster than the named one. Method: name it twice."""
    seen: list[Session] = []

    @click.command(cls=SessionCommand)
    @click.pass_obj
    def probe(session: Session) -> None:
        seen.append(session)

    monkeypatch.setattr(command_module.RootGroup, "get_command", lambda *_: probe)
    attribute = {"timeout": "timeout_s"}.get(option, option.replace("-", "_"))
    monkeypatch.setenv(f"QUORATE_{option.replace('-', '_').upper()}", "127.0.0.1:9190")
    given = [f"--{option}", text]
    assert main([*given, "probe"] if is_at_root else ["probe", *given]) == 0
    assert getattr(seen[0], attribute) == value


def test_the_environment_counts_where_nothing_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUORATE_BOOTSTRAP", "127.0.0.1:1")
    status, _, err = run(capsys, "topic", "list", "--timeout", "0.3")
    assert status == 7
    assert "through 127.0.0.1:1:" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nonsense",), "No such command"),
        (("topic", "nonsense"), "No such command"),
        (("version", "--nonsense"), "No such option"),
        (("-o", "xml", "version"), "Invalid value"),
        (("topic", "list"), "no server to talk to"),
        (("topic", "list", "--bootstrap", "nowhere"), "not host:port"),
        (("server",), "node.id must be set"),
    ],
)
def test_wrong_usage_is_status_two(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.delenv("QUORATE_BOOTSTRAP", raising=False)
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_a_cluster_that_does_not_answer_is_status_seven(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "topic", "list", "--bootstrap", "127.0.0.1:1", "--timeout", "0.3")
    assert status == 7
    assert err.startswith("error: cannot reach the cluster through 127.0.0.1:1")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvariantViolation("two leaders epoch=3"), "internal invariant broken: two leaders"),
        (RuntimeError("boom"), "unexpected RuntimeError: boom"),
    ],
)
def test_our_own_mistakes_are_status_one(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    words: str,
) -> None:
    def broken(_name: str) -> None:
        raise error

    monkeypatch.setattr(command_module.importlib, "import_module", broken)
    status, _, err = run(capsys, "version")
    assert status == 1
    assert words in err


def test_help_imports_no_command() -> None:
    """`quorate --help` must be quick: neither grpc nor the client is loaded for it."""
    code = (
        "import sys; from quorate.cli.main import main; main(['--help']);"
        "sys.exit('grpc' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "random-uuid" in done.stdout


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    del tmp_path
    done = subprocess.run(
        [f"'{sys.executable}' -m quorate completion bash | head -c 1; echo ${{PIPESTATUS[0]}}"],
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip().endswith("0")
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    status, out, _ = run(capsys, "completion", shell)
    assert status == 0
    assert "_QUORATE_COMPLETE" in out


def test_config_show_names_the_origin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUORATE__NODE__DATA_DIR", "data")
    status, out, _ = run(
        capsys, "config", "show", "--origin", "--changed", "--set", "node.id=4", "-o", "json"
    )
    assert status == 0
    assert json.loads(out)["rows"] == [
        {"key": "node.id", "value": 4, "origin": "flag node.id"},
        {"key": "node.data_dir", "value": "data", "origin": "environment QUORATE__NODE__DATA_DIR"},
    ]


def test_config_show_also_shows_what_cannot_work(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "config", "show", "--set", "quorum.fetch_timeout_ms=1")
    assert status == 2
    assert "quorum.fetch_timeout_ms" in out
    assert "quorum.fetch_max_wait_ms (500) must be below fetch_timeout_ms (1)" in err


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (("topc", "list"), "Did you mean topic?"),
        (("topic", "lst"), "Did you mean list?"),
        (("feature", "list"), "Did you mean describe?"),
        (("config", "describe"), "Did you mean get?"),
        (("acl", "delete"), "Did you mean remove?"),
        (("topic", "remove"), "Did you mean delete?"),
        (("user", "create"), "Did you mean add?"),
        (("config", "alter"), "Did you mean set?"),
        (("quorum", "describe", "stats"), "Did you mean status?"),
        (("log", "vrify"), "Did you mean verify?"),
        (("status",), "Did you mean quorum describe status?"),
        (("transfer-leader", "2"), "Did you mean quorum transfer-leader?"),
        (("zzzzz",), "No such command 'zzzzz'."),
    ],
)
def test_an_unknown_command_names_one_that_is_near(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], near: str
) -> None:
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert near in err


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_meant_by_a_verb_without_its_noun_exists(verb: str) -> None:
    group: click.Command = cli
    for word in VERBS[verb].split():
        assert isinstance(group, click.Group)
        found = group.get_command(click.Context(group), word)
        assert found is not None
        group = found
    assert VERBS[verb].split()[-1] == verb


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["audit", "--export", "x", "partitions"], "quorate audit partitions --export"),
        (["--export", "x", "audit", "partitions"], "quorate audit partitions --export"),
        (["--as-of=3", "audit", "leaders"], "quorate audit leaders --as-of"),
        (["topic", "--partitions", "8", "create", "x"], "quorate topic create --partitions"),
        (["--set", "node.id=1", "server"], "quorate server --set"),
    ],
)
def test_an_option_before_its_command_is_told_its_place(
    capsys: pytest.CaptureFixture[str], arguments: list[str], meant: str
) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.endswith(f"before the command. Write it behind: {meant}\n")


@pytest.mark.parametrize(
    "arguments", [["--nope", "topic", "list"], ["audit", "--export", "x"], ["--export", "x"]]
)
def test_an_option_that_no_named_command_has_is_told_none(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert "No such option" in err
    assert "behind" not in err
