"""Contexts: how clusters are named, who may read that, and when it counts."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from quorate.cli import topic
from quorate.cli.main import main
from quorate.cli.session import Session


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("BOOTSTRAP", "CONTEXT", "TLS_CA", "TLS_CERT", "TLS_KEY"):
        monkeypatch.delenv(f"QUORATE_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg"


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def session_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Session:
    """The session with which a command reaches its cluster."""
    found: list[Session] = []

    def ask(session: Session, *_rest: object, **_more: object) -> Any:
        found.append(session)
        raise KeyboardInterrupt

    monkeypatch.setattr(topic, "ask", ask)
    main([*arguments, "topic", "list"])
    return found[0]


def test_the_first_is_in_use_and_another_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    first = asked(capsys, "context", "add", "test", "--bootstrap", "a:1,b:2")
    assert (first["is_current"], first["bootstrap"]) == (True, ["a:1", "b:2"])
    assert not asked(capsys, "context", "add", "prod", "--bootstrap", "p:1")["is_current"]
    asked(capsys, "context", "use", "prod")
    rows = asked(capsys, "context", "list")["rows"]
    assert [(row["name"], row["is_current"]) for row in rows] == [("prod", True), ("test", False)]
    assert asked(capsys, "context", "show")["name"] == "prod"
    asked(capsys, "context", "remove", "prod")
    assert main(["context", "show"]) == 4
    assert asked(capsys, "context", "show", "test")["bootstrap"] == ["a:1", "b:2"]


def test_nobody_else_may_read_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked(capsys, "context", "add", "test", "--bootstrap", "a:1")
    file = home / "quorate" / "contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == ["contexts.json"]


def test_what_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Written options, then a context that is named, then the environment, then the one in use."""
    asked(capsys, "context", "add", "tls", "--bootstrap", "t:1", "--tls-ca", "ca.pem",
          "--timeout", "3")  # fmt: skip
    asked(capsys, "context", "add", "other", "--bootstrap", "o:1")
    in_use = session_of(monkeypatch)
    assert (in_use.bootstrap, in_use.timeout_s) == (("t:1",), 3.0)
    assert in_use.tls_ca == Path("ca.pem").absolute(), "commands may be given elsewhere"
    elsewhere = session_of(monkeypatch, "--bootstrap", "x:1")
    assert (elsewhere.bootstrap, elsewhere.tls_ca) == (("x:1",), None)
    named = session_of(monkeypatch, "--context", "other")
    assert (named.bootstrap, named.tls_ca) == (("o:1",), None)
    both = session_of(monkeypatch, "--context", "tls", "--bootstrap", "x:1", "--timeout", "9")
    assert (both.bootstrap, both.timeout_s) == (("x:1",), 9.0)
    assert both.tls_ca is not None
    monkeypatch.setenv("QUORATE_BOOTSTRAP", "e:1")
    assert session_of(monkeypatch).bootstrap == ("e:1",)
    monkeypatch.setenv("QUORATE_CONTEXT", "other")
    assert session_of(monkeypatch).bootstrap == ("o:1",)


def test_the_environment_brings_certificates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUORATE_TLS_CA", "/ca.pem")
    monkeypatch.setenv("QUORATE_TLS_CERT", "/me.pem")
    monkeypatch.setenv("QUORATE_TLS_KEY", "/me.key")
    found = session_of(monkeypatch, "--bootstrap", "x:1")
    assert (found.tls_ca, found.tls_cert, found.tls_key) == (
        Path("/ca.pem"), Path("/me.pem"), Path("/me.key"),
    )  # fmt: skip
    made = asked(capsys, "context", "add", "secure", "--bootstrap", "x:1")
    assert made["tls_key"] == "/me.key"


NEW = ("context", "add", "new", "--bootstrap", "a:1")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("topic", "list", "--context", "tset"), 4, "no such context: tset (did you mean test?)"),
        (("context", "use", "zzz"), 4, "(`quorate context list` shows all)"),
        (("context", "add", "test", "--bootstrap", "a:1"), 5, "--replace replaces it"),
        (("context", "add", "new"), 2, "no server to talk to"),
        (("context", "add", "new", "--bootstrap", "nonsense"), 2, "--bootstrap: "),
        (("context", "add", " ", "--bootstrap", "a:1"), 2, "is no name for a context"),
        ((*NEW, "--tls-ca", "ca", "--tls-cert", "c"), 2, "--tls-key belong together"),
        ((*NEW, "--tls-ca", "ca", "--sasl-password-file", "p"), 2, "needs --sasl-user"),
        ((*NEW, "--sasl-user", "alice"), 2, "needs TLS: name --tls-ca"),
        ((*NEW, "--sasl-token-file", "t"), 2, "needs TLS: name --tls-ca"),
        (
            (*NEW, "--tls-ca", "ca", "--sasl-user", "alice", "--sasl-token-file", "t"),
            2,
            "exclude each other",
        ),
    ],
)
def test_refusals(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], status: int, words: str
) -> None:
    asked(capsys, "context", "add", "test", "--bootstrap", "a:1")
    before = asked(capsys, "context", "list")
    assert main(list(arguments)) == status
    assert words in capsys.readouterr().err
    assert asked(capsys, "context", "list") == before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 2}', '{"version": 1}', "\xff"])
def test_a_damaged_file_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file = home / "quorate" / "contexts.json"
    file.parent.mkdir(parents=True)
    file.write_text(content, encoding="latin-1")
    assert main(["topic", "list"]) == 2
    seen = capsys.readouterr().err
    assert seen.startswith(f"error: {file}: no file of contexts: ")
    assert seen.count("\n") == 1
    assert file.read_text(encoding="latin-1") == content
