"""Numbers of seconds on the command line."""

from __future__ import annotations

import pytest

from quorate.cli.main import main


@pytest.mark.parametrize("given", ["nan", "inf"])
@pytest.mark.parametrize(
    "command",
    [
        ("topic", "list", "--timeout"),
        ("top", "--interval"),
        ("quorum", "may-stop", "1", "--wait"),
        ("backup", "create", "somewhere", "--follow"),
    ],
    ids=lambda words: words[0],
)
def test_what_is_no_number_of_seconds_is_wrong_usage(
    command: tuple[str, ...], given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, given, "--bootstrap", "127.0.0.1:1"]) == 2
    assert f"{given} is no number of seconds." in capsys.readouterr().err
