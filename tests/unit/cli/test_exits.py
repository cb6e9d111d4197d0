"""Errors become the documented exit codes, and one line with the remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.connection import ask
from quorate.cli.exits import CliError, Exit, exit_for, exit_for_code, hint_for
from quorate.cli.main import cli
from quorate.cli.session import Session
from quorate.client.errors import RefusedError
from quorum import errors
from quorum.errors import CommandError, ErrorCode

CLI_PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "cli.md"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Exit.NOT_FOUND),
        (ErrorCode.TOPIC_ALREADY_EXISTS, Exit.CONFLICT),
        (ErrorCode.PRODUCER_FENCED, Exit.CONFLICT),
        (ErrorCode.INVALID_REPLICATION_FACTOR, Exit.CONFLICT),
        (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, Exit.CONFLICT),
        (ErrorCode.POLICY_VIOLATION, Exit.REFUSED),
        (ErrorCode.INVALID_TOPIC, Exit.USAGE),
        (ErrorCode.NOT_CONTROLLER, Exit.UNREACHABLE),
        (ErrorCode.OUTCOME_UNKNOWN, Exit.UNREACHABLE),
        (ErrorCode.DIGEST_MISMATCH, Exit.DAMAGED),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Exit.FAILED),
    ],
)
def test_protocol_codes(code: ErrorCode, status: Exit) -> None:
    assert exit_for_code(code) is status
    assert exit_for(CommandError(code, "x")) is status


def test_no_refusal_counts_as_success() -> None:
    for code in ErrorCode:
        assert exit_for_code(code) is not Exit.OK


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.ConfigError(["a"]), Exit.USAGE),
        (errors.IdentityError("a"), Exit.USAGE),
        (errors.IdentityDamagedError("a"), Exit.DAMAGED),
        (errors.CorruptBatchError("a"), Exit.DAMAGED),
        (errors.SnapshotCorruptError("a"), Exit.DAMAGED),
        (errors.LogDamagedError("a", path="p", position=1, offset=2), Exit.DAMAGED),
        (errors.UnknownRecordError("a", api_key=1, version=2), Exit.DAMAGED),
        (errors.StorageError("a"), Exit.FAILED),
        (CliError("a", code=Exit.CONFLICT), Exit.CONFLICT),
    ],
)
def test_failures(error: Exception, status: Exit) -> None:
    assert exit_for(error) is status


def test_missing_permission_names_the_account() -> None:
    error = errors.StorageError("cannot open: Permission denied", "x")
    error.__cause__ = PermissionError()
    assert "the account that owns the files" in hint_for(error)
    assert exit_for(error) is Exit.USAGE, "a supervisor must not try it again"
    assert hint_for(errors.StorageError("cannot open", "x")) == ""


@pytest.mark.parametrize("kind", [errors.IdentityDamagedError, errors.ElectionStateError])
def test_a_file_that_nobody_could_read_is_not_called_damaged(
    kind: type[errors.QuorateError],
) -> None:
    refused = errors.StorageError("cannot open: Permission denied", "x")
    refused.__cause__ = PermissionError()
    error = kind(f"unreadable: {refused}")
    error.__cause__ = refused
    assert exit_for(error) is Exit.USAGE
    assert "the account that owns the files" in hint_for(error)


def test_hints_name_the_next_step() -> None:
    assert "quorate format" in hint_for(errors.IdentityError("x"))
    assert "operations/recover.md" in hint_for(errors.CorruptBatchError("x"))
    assert "operations/recover.md" in hint_for(errors.IdentityDamagedError("x"))
    assert hint_for(CliError("x", hint="do this")) == "do this"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (ErrorCode.SASL_AUTHENTICATION_FAILED, "--sasl-user"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ""),
    ],
)
def test_who_is_not_authenticated_learns_which_options_say_who_calls(
    code: ErrorCode, hint: str
) -> None:
    async def refused(_client: object) -> None:
        raise RefusedError(code, "no")

    with pytest.raises(CliError) as found:
        ask(Session(bootstrap=("127.0.0.1:1",)), refused)
    assert hint in found.value.hint
    assert bool(found.value.hint) is bool(hint)


def test_without_a_terminal_the_question_is_shown_that_yes_would_answer() -> None:
    result = CliRunner().invoke(cli, ["topic", "delete", "orders"], standalone_mode=False)
    assert isinstance(result.exception, CliError)
    assert result.exception.code is Exit.REFUSED
    assert "Delete topic orders?" in result.exception.message
    assert "nothing was done" in result.exception.message
    assert "--yes" in result.exception.hint


def test_every_exit_code_is_documented_and_the_other_way_round() -> None:
    rows = re.findall(r"^\| (\d+) \| \w", CLI_PAGE.read_text(encoding="utf-8"), re.M)
    assert sorted(map(int, rows)) == sorted(Exit)
