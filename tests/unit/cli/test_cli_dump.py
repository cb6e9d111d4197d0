"""Dumps show every batch and record, of ours and of Kafka's, and stop at damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorate.cli import dump_view
from quorate.cli.dump import read_batches
from quorate.cli.main import main
from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange, Origin, Voters
from quorum.errors import CorruptBatchError, StorageError
from quorum.log.filesystem import OsFileSystem
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks
from quorum.log.readonly import ReadOnlyLog
from quorum.types import OffsetAndEpoch
from snapshot.naming import file_name
from statemachine.codec import encode_kafka, encode_record
from statemachine.payload import record_payload
from statemachine.records import TopicRecord, UserScramCredentialRecord

TOPIC_ID = bytes(range(16))
TOPIC = TopicRecord(name="orders", topic_id=TOPIC_ID)
SECRET = UserScramCredentialRecord(name="u", mechanism=1, salt=b"salty", stored_key=b"k")


def segment(tmp_path: Path, *, tail: bytes = b"") -> Path:
    batches = [
        encode_control_batch(
            [LeaderChange(1, (1, 2), (1, 2))], base_offset=0, epoch=1, timestamp=5
        ),
        encode_batch(
            [encode_record(TOPIC), encode_kafka(TOPIC)],
            base_offset=1,
            epoch=1,
            timestamp=6,
            producer_id=9,
            producer_epoch=0,
            base_sequence=3,
            headers=(("principal", b"User:a"), ("answer", b"\x81\xff")),
        ),
        encode_batch([encode_record(SECRET), b"\xc1junk"], base_offset=3, epoch=2, timestamp=7),
    ]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(batches) + tail)
    return path


def test_a_control_record_is_shown_with_who_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "00000000000000000000.log"
    who = Origin("User:ann", "third voter")
    records = [LeaderChange(1, (1, 2), (1, 2)), Voters((), origin=who)]
    path.write_bytes(encode_control_batch(records, base_offset=0, epoch=1, timestamp=5))
    _, lines, _ = dumped(capsys, str(path))
    found: Any = lines[0]["records"]
    leader, voters = found
    assert "headers" not in leader
    assert voters["headers"] == {"principal": "User:ann", "reason": "third voter"}
    assert "origin" not in voters["payload"]["data"]


def dumped(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, list[dict[str, object]], str]:
    status = main(["log", "dump", "-o", "jsonl", *arguments])
    captured = capsys.readouterr()
    return status, [json.loads(line) for line in captured.out.splitlines()], captured.err


def test_batches_and_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, batches, _ = dumped(capsys, str(segment(tmp_path)))
    assert status == 0
    assert [(batch["baseOffset"], batch["count"]) for batch in batches] == [(0, 1), (1, 2), (3, 2)]
    assert batches[0]["isControl"] is True
    assert batches[0]["records"][0]["payload"]["data"]["leaderId"] == 1
    assert batches[1]["producerId"] == 9
    assert batches[1]["baseSequence"] == 3
    first, second = batches[1]["records"]
    expected = {
        "type": "TOPIC_RECORD",
        "version": 0,
        "data": {"name": "orders", "topicId": "AAECAwQFBgcICQoLDA0ODw"},
    }
    assert first["payload"] == expected
    assert second["payload"] == expected
    assert first["headers"] == {"principal": "User:a", "answer": "gf8"}


def test_a_record_that_cannot_be_read_does_not_stop_the_dump(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, batches, _ = dumped(capsys, str(segment(tmp_path)))
    assert status == 0
    assert "error" in batches[2]["records"][1]


def test_secrets_are_hidden_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(segment(tmp_path))
    _, hidden, _ = dumped(capsys, path)
    _, shown, _ = dumped(capsys, "--show-secrets", path)
    assert hidden[2]["records"][0]["payload"]["data"]["salt"] == "(hidden)"
    assert shown[2]["records"][0]["payload"]["data"]["salt"] == "c2FsdHk"
    assert shown[2]["records"][0]["payload"]["data"]["name"] == "u"


def test_a_range_of_offsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, batches, _ = dumped(
        capsys, "--no-records", "--from-offset", "2", "--to-offset", "3", str(segment(tmp_path))
    )
    assert [batch["baseOffset"] for batch in batches] == [1]
    assert "records" not in batches[0]


@pytest.mark.parametrize(
    ("wanted", "status", "said"),
    [
        (("--from-offset", "5"), 4, "no batch with offsets from 5 on (there are offsets 0 to 4)"),
        (
            ("--from-offset", "3", "--to-offset", "3"),
            4,
            "no batch with offsets from 3 on and below",
        ),
        (("--to-offset", "0"), 4, "from 0 on and below 0"),
        (("--from-offset", "3", "--to-offset", "2"), 2, "--to-offset 2 is below --from-offset 3"),
        (("--from-offset", "4"), 0, ""),
    ],
)
def test_a_range_without_a_batch(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    wanted: tuple[str, ...],
    status: int,
    said: str,
) -> None:
    """The document is written all the same, without rows."""
    found, rows, errors = dumped(capsys, *wanted, str(segment(tmp_path)))
    assert (found, bool(rows)) == (status, status == 0)
    assert said in errors
    if status == 4:
        assert main(["log", "dump", "-o", "json", *wanted, str(segment(tmp_path))]) == 4
        assert json.loads(capsys.readouterr().out)["rows"] == []


def test_a_new_segment_has_no_batch_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was asked for that is missing."""
    new = tmp_path / "00000000000000000007.log"
    new.touch()
    assert dumped(capsys, str(new))[0] == 0
    assert dumped(capsys, str(new), "--from-offset", "7")[0] == 4


@pytest.mark.parametrize("tail", [b"\x00" * 5, b"\x00" * 80, b"torn"])
def test_damage_ends_the_dump_and_names_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tail: bytes
) -> None:
    whole = segment(tmp_path).stat().st_size
    status, batches, err = dumped(capsys, str(segment(tmp_path, tail=tail)))
    assert status == 8
    assert len(batches) == 3
    assert f"position {whole}" in err
    assert "00000000000000000000.log" in err


def test_a_flipped_bit_and_a_gap_are_found(tmp_path: Path) -> None:
    path = segment(tmp_path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptBatchError, match="checksum"):
        list(read_batches(path))
    gap = encode_batch([b"\x93\x02\x00\xc0"], base_offset=9, epoch=2, timestamp=7)
    with pytest.raises(CorruptBatchError, match="base offset 9 where 5 follows"):
        list(read_batches(segment(tmp_path, tail=gap)))


@pytest.mark.parametrize(("number", "is_found_at"), [(0, 1), (1, 2)])
def test_a_corrupt_leader_epoch_is_found(
    tmp_path: Path, number: int, is_found_at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """No checksum covers it: only the next batch, of an older epoch, shows that it is wrong."""
    path = segment(tmp_path)
    positions = [batch.header.position for batch in read_batches(path)]
    data = bytearray(path.read_bytes())
    data[positions[number] + 13] ^= 0x7F
    path.write_bytes(data)
    status, batches, err = dumped(capsys, str(path))
    assert (status, len(batches)) == (8, is_found_at)
    assert f"position {positions[is_found_at]}" in err
    assert "leader epoch" in err


def test_a_first_offset_that_is_not_the_segments_is_found(tmp_path: Path) -> None:
    path = segment(tmp_path)
    with pytest.raises(CorruptBatchError, match="base offset 0 where 7 follows"):
        list(read_batches(path.rename(tmp_path / f"{7:020d}.log")))
    # Any other name of a copy has no meaning.
    assert len(list(read_batches(segment(tmp_path).rename(tmp_path / "copy.log")))) == 3


def test_lines_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(segment(tmp_path))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Log starting offset: 0"
    assert lines[2].startswith("baseOffset: 0 lastOffset: 0 count: 1 ")
    assert lines[3].startswith("| offset: 0 timestamp: 5 ")


def document(
    capsys: pytest.CaptureFixture[str], output: str, *arguments: str
) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and documents of a dump."""
    capsys.readouterr()
    status = main(["-o", output, *arguments])
    text = capsys.readouterr().out
    return status, [json.loads(text)] if output == "json" else list(yaml.safe_load_all(text))


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_a_document_names_its_kind_and_version(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(segment(tmp_path))
    _, lines, _ = dumped(capsys, path)
    status, (found,) = document(capsys, output, "log", "dump", path)
    assert status == 0
    head = {"kind": "LogDump", "version": 1, "file": path, "error": None}
    rows = found.pop("rows")
    assert found == head
    assert [{"file": path, **row} for row in rows] == lines
    empty = tmp_path / "00000000000000000009.log"
    empty.write_bytes(b"")
    status, (found,) = document(capsys, output, "log", "dump", str(empty))
    assert (status, found["rows"], found["error"]) == (0, [], None)
    checkpoint = str(
        format_one(tmp_path) / "__cluster_metadata-0" / file_name(OffsetAndEpoch(0, 0))
    )
    status, (found,) = document(capsys, output, "snapshot", "dump", checkpoint)
    assert (status, found["kind"], len(found["rows"]) > 0) == (0, "SnapshotDump", True)


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize("intact", [0, 3])
def test_a_document_is_whole_after_damage(
    tmp_path: Path, output: str, intact: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = segment(tmp_path, tail=b"torn")
    if not intact:
        path.write_bytes(b"\x00" + path.read_bytes()[2:])
    status, (found,) = document(capsys, output, "log", "dump", str(path))
    assert (status, found["kind"], len(found["rows"])) == (8, "LogDump", intact)
    assert path.name in found["error"]


def test_several_files_are_a_stream_of_yaml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(segment(tmp_path))
    status, found = document(capsys, "yaml", "log", "dump", path, path)
    assert (status, [each["kind"] for each in found]) == (0, ["LogDump", "LogDump"])
    assert main(["-o", "json", "log", "dump", path, path]) == 2


def test_defaults_in_tagged_fields_are_left_out() -> None:
    payload = record_payload(TOPIC, 0)
    assert payload["data"] == {"name": "orders", "topicId": "AAECAwQFBgcICQoLDA0ODw"}


def format_one(tmp_path: Path) -> Path:
    data_dir = tmp_path / "d"
    arguments = ["--cluster-id", "c", "--node-id", "1", "--data-dir", str(data_dir), "--standalone"]
    assert main(["format", *arguments]) == 0
    return data_dir


def test_checkpoints_are_listed_and_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data_dir = format_one(tmp_path)
    capsys.readouterr()
    assert main(["snapshot", "list", "--verify", "-o", "json", str(data_dir)]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["end_offset"], row["epoch"], row["state"], row["records"]) == (0, 0, "sealed", 1)


def test_a_damaged_checkpoint_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data_dir = format_one(tmp_path)
    path = data_dir / "__cluster_metadata-0" / file_name(OffsetAndEpoch(0, 0))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    capsys.readouterr()
    assert main(["snapshot", "list", "--verify", "-o", "json", str(data_dir)]) == 8
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rows"][0]["state"] == "damaged"
    assert main(["snapshot", "dump", str(path)]) == 8
    assert (
        main(["doctor", "--deep", "--set", "node.id=1", "--set", f"node.data_dir={data_dir}"]) == 3
    )


def test_lines_of_several_files_name_their_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: jsonl has the content of json and yaml. Method: two files with the same offsets."""
    other = tmp_path / "other"
    other.mkdir()
    files = [segment(tmp_path), segment(other)]
    status, batches, _ = dumped(capsys, *map(str, files))
    assert status == 0
    assert [batch["file"] for batch in batches] == [str(file) for file in files for _ in range(3)]


def test_a_directory_of_ours_is_not_read_a_second_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a high watermark there is no warning about epochs; without one there is."""
    segment(tmp_path)
    assert "without a leader change" in dumped(capsys, str(tmp_path))[2]

    def reads(_: Path) -> ReadOnlyLog:
        raise AssertionError("the whole log is read again")

    monkeypatch.setattr("quorum.log.readonly.open_readonly", reads)
    watermarks = HighWatermarkFile(OsFileSystem(), tmp_path)
    watermarks.store_durably(Watermarks(5, 5))
    watermarks.close()
    assert dumped(capsys, str(tmp_path))[::2] == (0, "")


def test_a_dump_succeeds_when_its_node_trims_before_the_epochs_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segment(tmp_path)
    show_file = dump_view.show_file

    def trims(*arguments: Any, **options: Any) -> None:
        show_file(*arguments, **options)
        monkeypatch.setattr(OsFileSystem, "open", gone)

    def gone(*_: object, **__: object) -> None:
        raise StorageError(f"{path}: no such file")

    monkeypatch.setattr(dump_view, "show_file", trims)
    status, batches, warnings = dumped(capsys, str(tmp_path))
    assert (status, len(batches)) == (0, 3)
    assert "the epochs of the batches could not be checked" in warnings


@pytest.mark.parametrize(
    ("name", "hint"),
    [("node.toml", "is this another file?"), ("00000000000000000000.log", "every checksum before")],
)
def test_a_file_of_another_kind_is_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, hint: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"[node]\nid = 1\n" * 20)
    status, rows, errors = dumped(capsys, str(path))
    assert (status, rows) == (8, [])
    assert hint in errors


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("00000000000000000000.timeindex", "index by time, of Kafka's"),
        ("00000000000000000010.snapshot", "snapshot of producer states, of Kafka's"),
        ("00000000000000000000.index", "index by offset"),
        ("00000000000000000000.txnindex", "aborted transactions"),
        ("00000000000000000000.digest", "log digest"),
        ("quorum-state", "the vote of this replica"),
        ("leader-epoch-checkpoint", "where each epoch"),
    ],
)
def test_what_lies_beside_a_segment_is_named_and_not_called_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(bytes(100))
    status, rows, warnings = dumped(capsys, str(path))
    assert (status, rows) == (2, [])
    assert message in warnings
    assert "damage" not in warnings
