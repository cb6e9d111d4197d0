"""``quorate recover plan`` on the directories of a stopped cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.cli.main import main
from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.log.directory_lock import DirectoryLock
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import partition_directory, segment_path
from quorum.log.recovery import open_log
from quorum.types import uuid_to_text
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord

CLUSTER = "c2ltdWxhdGVkLWNsdXN0ZQ"


def node(folder: Path, number: int, records: int, *, committed: int = 1) -> Path:
    """A voter of three, with a leader change and some configuration records."""
    made = folder / f"node-{number}"
    voters = ",".join(
        f"{each}@localhost:{9090 + each}:{uuid_to_text(bytes([each]) * 16)}" for each in (1, 2, 3)
    )
    arguments = ["format", "--cluster-id", CLUSTER, "--node-id", str(number)]
    arguments += ["--data-dir", str(made), "--initial-voters", voters]
    assert main([*arguments, "--set", f"listeners.client=localhost:{9090 + number}"]) == Exit.OK
    log, _ = open_log(OsFileSystem(), partition_directory(made))
    change = LeaderChange(1, (1, 2, 3), (1, 2))
    log.append(
        encode_control_batch([change], base_offset=0, epoch=1, timestamp=1),
        base_offset=0,
        end_offset=1,
    )
    for offset in range(1, 1 + records):
        value = encode_record(ConfigRecord(2, "orders", "retention.ms", str(offset)))
        headers = (("principal", b"User:ann"), ("reason", b"a ticket"))
        batch = encode_batch([value], base_offset=offset, epoch=1, timestamp=1, headers=headers)
        log.append(batch, base_offset=offset, end_offset=offset + 1)
    log.flush()
    log.store_high_watermark(committed)
    log.close()
    return made


def test_records_that_would_be_forced_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = node(tmp_path, 1, 3, committed=2)
    capsys.readouterr()

    assert main(["recover", "plan", str(left)]) == Exit.UNHEALTHY
    shown = capsys.readouterr().out
    assert "1 here, 2 missing, 3 missing" in shown
    assert "everything below 2 is committed" in shown
    assert "the 2 records in [2, 4) may be committed or not" in shown
    assert "whether the missing voters committed other records from 2 on" in shown
    assert "User:ann" in shown

    assert main(["recover", "plan", str(left), "-o", "json"]) == Exit.UNHEALTHY
    found = json.loads(capsys.readouterr().out)
    assert [row["offset"] for row in found["rows"]] == [2, 3]
    assert found["rows"][0]["reason"] == "a ticket"
    assert found["rows"][0]["data"]["value"] == "2"
    assert (found["kept_end"], found["forced_end"], found["unknown_from"]) == (2, 4, 2)
    assert [each["node_id"] for each in found["missing_voters"]] == [2, 3]


def test_two_of_three_need_no_recovery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directories = [str(node(tmp_path, number, number)) for number in (1, 2)]
    capsys.readouterr()
    assert main(["recover", "plan", *directories]) == Exit.OK
    assert "no recovery is needed" in capsys.readouterr().out


def test_what_no_plan_can_be_made_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = node(tmp_path, 1, 3)
    assert main(["recover", "plan", str(tmp_path / "nowhere")]) == Exit.USAGE
    with DirectoryLock(left):
        assert main(["recover", "plan", str(left)]) != Exit.OK
    assert "in use by another process" in capsys.readouterr().err
    assert main(["recover", "plan", str(left), str(left)]) == Exit.USAGE
    assert "named twice" in capsys.readouterr().err
    copied = shutil.copytree(left, tmp_path / "copy")
    assert main(["recover", "plan", str(left), str(copied)]) == Exit.REFUSED
    assert "copies of one disk" in capsys.readouterr().err

    path = segment_path(partition_directory(left), 0)
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(bytes(data))
    before = {each: each.read_bytes() for each in left.rglob("*") if each.is_file()}
    assert main(["recover", "plan", str(left)]) == Exit.REFUSED
    assert "the log is damaged" in capsys.readouterr().err
    assert {each: each.read_bytes() for each in left.rglob("*") if each.is_file()} == before
