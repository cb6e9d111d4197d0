"""``snapshot now``: a node that is down keeps no other from its checkpoint, and is named."""

from __future__ import annotations

import json

import pytest

from quorate.cli import snapshot_now
from quorate.cli.exits import CliError, Exit
from quorate.cli.main import main
from quorate.cli.patience import UnreachableError
from quorate.cli.reachability import Obstacle
from quorate.client.results.admin import CreateSnapshotResponse

DOWN, FULL, WELL, SLOW = "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"


async def one(_session: object, server: str, **_fields: object) -> CreateSnapshotResponse:
    if server == DOWN:
        raise UnreachableError({server: Obstacle("connection refused", "start the node")})
    if server == FULL:
        raise CliError(f"{server}: the disk is full", code=Exit.REFUSED)
    if server == SLOW:
        raise CliError(
            f"{server}: no answer in 2 s", hint="it may be writing", code=Exit.UNREACHABLE
        )
    return CreateSnapshotResponse(node_id=3, end_offset=9, epoch=1, size_bytes=70, is_new=True)


@pytest.fixture(autouse=True)
def nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_now, "_one", one)


def run(capsys: pytest.CaptureFixture[str], *servers: str) -> tuple[int, str, str]:
    status = main(["-o", "json", "snapshot", "now", "--bootstrap", ",".join(servers)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_a_node_that_is_down_keeps_no_other_from_its_checkpoint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, err = run(capsys, DOWN, WELL)
    assert status == Exit.UNREACHABLE
    assert [row["node_id"] for row in json.loads(out)["rows"]] == [3]
    assert f"1 of 2 nodes did not report a checkpoint: {DOWN}: connection refused" in err


def test_every_failure_is_named_and_the_first_is_the_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, err = run(capsys, FULL, DOWN)
    assert (status, out) == (Exit.REFUSED, "")
    assert f"{FULL}: the disk is full; {DOWN}: connection refused" in err


def test_a_node_that_may_still_be_writing_is_not_said_to_have_written_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, _, err = run(capsys, WELL, SLOW)
    assert f"1 of 2 nodes did not report a checkpoint: {SLOW}: no answer in 2 s" in err
    assert "it may be writing" in err


def test_the_failure_of_the_only_node_keeps_its_hint(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, DOWN)
    assert status == Exit.UNREACHABLE
    assert "start the node" in err
