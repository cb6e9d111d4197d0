"""``quorate recover`` on the directories of a stopped cluster."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.cli.main import main
from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.log.directory_lock import DirectoryLock
from quorum.log.election_store import ElectionFile
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import load_identity, write_identity
from quorum.log.layout import WATERMARK_NAMES, partition_directory, segment_path
from quorum.log.recovery import open_log
from quorum.types import ElectionState, uuid_to_text
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
    fs, partition, disk = OsFileSystem(), partition_directory(made), bytes([number]) * 16
    ElectionFile(fs, partition, disk).save(ElectionState(1))
    log, _ = open_log(fs, partition, owner=disk)
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
    capsys.readouterr()
    assert main(["recover", "plan", str(tmp_path / "nowhere")]) == Exit.USAGE
    assert main(["recover", "plan", str(partition_directory(left))]) == Exit.USAGE
    assert capsys.readouterr().err.count("contains __cluster_metadata-0") == 2
    with DirectoryLock(left):
        assert main(["recover", "plan", str(left)]) == Exit.REFUSED
    shown = capsys.readouterr().err
    assert ("in use by another process" in shown, "stop its node first" in shown) == (True, True)
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


def applied(*arguments: object) -> int:
    return main(["recover", "apply", *(str(each) for each in arguments)])


def contents(folder: Path) -> dict[Path, bytes]:
    return {
        each: each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file() and each.name != ".lock"
    }


def test_apply_begins_an_incarnation_and_the_log_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = node(tmp_path, 1, 3, committed=2)
    capsys.readouterr()
    assert applied(left, "--cluster-id", CLUSTER, "--reason", "a fire", "-o", "json") == Exit.OK
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    begun = found["log_incarnation"]
    assert (begun["number"], begun["previous_id"], begun["kept_end_offset"]) == (1, None, 2)
    assert (found["end_offset"], found["end_epoch"]) == (7, 1001)
    assert [each["node_id"] for each in found["removed_voters"]] == [2, 3]
    assert f"\n  quorate format --cluster-id {CLUSTER}" in shown.err
    assert f"--log-incarnation {begun['id']}" in shown.err
    assert "\\n" not in shown.err
    identity = load_identity(OsFileSystem(), left)
    assert uuid_to_text(identity.log_incarnation_id) == begun["id"]

    assert main(["recover", "report", str(left), "-o", "json"]) == Exit.OK
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["id"], row["operation"], row["reason"]) == (begun["id"], "recovery", "a fire")
    assert (row["report"]["kept_end"], row["report"]["forced_end"]) == (2, 4)
    assert [each["node_id"] for each in row["report"]["missing_voters"]] == [2, 3]
    segment = segment_path(partition_directory(left), 0)
    assert main(["log", "dump", str(segment), "--records", "-o", "json"]) == Exit.OK
    assert "incarnationReport" in capsys.readouterr().out

    # Once more: the only voter is there, so nothing has to be recovered.
    before = contents(left)
    assert applied(left, "--cluster-id", CLUSTER) == Exit.REFUSED
    assert contents(left) == before


def test_apply_needs_the_cluster_id_and_no_other_consent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = node(tmp_path, 1, 3)
    before = contents(left)
    capsys.readouterr()
    assert applied(left) == Exit.REFUSED
    assert "the cluster id is missing, nothing was changed. Going on" in capsys.readouterr().err
    assert applied(left, "--yes") == Exit.USAGE
    assert applied(left, "--cluster-id", "another") == Exit.REFUSED
    assert "nothing was changed" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", Terminal("another\n"))
    assert applied(left) == Exit.REFUSED
    assert "records in [1, 4) become committed" in capsys.readouterr().err
    assert contents(left) == before
    monkeypatch.setattr("sys.stdin", Terminal(f"{CLUSTER}\n"))
    assert applied(left) == Exit.OK


class Terminal(io.StringIO):
    """A person's input."""

    def isatty(self) -> bool:
        return True


def test_apply_refuses_the_worse_log_a_majority_and_another_incarnation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = (node(tmp_path, number, number) for number in (1, 2, 3))
    before = contents(tmp_path)
    assert applied(first, second, "--cluster-id", CLUSTER) == Exit.REFUSED
    assert "a majority of the voters is here" in capsys.readouterr().err
    five = shutil.copytree(first, tmp_path / "observer")
    identity = replace(load_identity(OsFileSystem(), first), node_id=9, directory_id=b"o" * 16)
    write_identity(OsFileSystem(), five, identity)
    assert applied(five, third, "--cluster-id", CLUSTER) == Exit.REFUSED
    assert f"{third} has the newest log" in capsys.readouterr().err
    with DirectoryLock(second):
        assert applied(third, second, "--cluster-id", CLUSTER) != Exit.OK
    (second / ".lock").unlink()
    assert all(contents(tmp_path)[path] == data for path, data in before.items())
    assert applied(third, five, "--cluster-id", CLUSTER) == Exit.OK
    capsys.readouterr()
    assert main(["recover", "plan", str(third), str(second)]) == Exit.REFUSED
    assert "leave out the directories" in capsys.readouterr().err


def test_a_log_without_a_recovery_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = node(tmp_path, 1, 3)
    capsys.readouterr()
    assert main(["recover", "report", str(left)]) == Exit.OK
    assert "no recovery and no restore began" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["recover", "report", str(tmp_path / "empty")]) == Exit.NOT_FOUND
    assert "no log segments" in capsys.readouterr().err
    assert main(["recover", "report", str(left / "meta.properties")]) == Exit.USAGE


def test_nothing_to_force_is_not_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = node(tmp_path, 1, 3, committed=4)
    capsys.readouterr()
    assert applied(left) == Exit.REFUSED
    assert "become committed" not in capsys.readouterr().err


def test_an_observer_goes_on_if_its_address_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = node(tmp_path, 1, 3)
    identity = replace(load_identity(OsFileSystem(), left), node_id=9, directory_id=b"o" * 16)
    write_identity(OsFileSystem(), left, identity)
    ElectionFile(OsFileSystem(), partition_directory(left), b"o" * 16).save(ElectionState(1))
    assert applied(left, "--cluster-id", CLUSTER) == Exit.REFUSED
    assert "--endpoint" in capsys.readouterr().err
    assert applied(left, "--cluster-id", CLUSTER, "--endpoint", "nonsense") == Exit.USAGE
    assert applied(left, "--cluster-id", CLUSTER, "--endpoint", "n9:9093") == Exit.OK


def test_an_interrupted_apply_is_finished_by_repeating_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = node(tmp_path, 1, 3)
    identity = load_identity(OsFileSystem(), left)
    assert applied(left, "--cluster-id", CLUSTER) == Exit.OK
    done = contents(left)
    write_identity(OsFileSystem(), left, identity)
    capsys.readouterr()
    assert main(["recover", "plan", str(left)]) == Exit.REFUSED
    assert "was interrupted" in capsys.readouterr().err
    assert applied(left) == Exit.REFUSED
    assert applied(left, "--cluster-id", CLUSTER, "-o", "json") == Exit.OK
    assert json.loads(capsys.readouterr().out)["was_unfinished"]
    again = contents(left)
    assert {each for each in done if again[each] != done[each]} <= {
        partition_directory(left) / name for name in WATERMARK_NAMES
    }
