"""`quorate format` makes a directory once, completely, and the same on every voter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.cli.exits import Exit
from quorate.cli.main import main
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import load_identity
from quorum.types import uuid_to_text
from snapshot.reader import CheckpointReader

ID_A = uuid_to_text(bytes([7] * 16))
ID_B = uuid_to_text(bytes([9] * 16))
VOTERS = f"1@n1:9190:{ID_A},2@[::1]:9190:{ID_B}"
BOOTSTRAP = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def fmt(data_dir: Path, *arguments: str, node_id: int = 1) -> int:
    who = ["--cluster-id", "c1", "--node-id", str(node_id), "--data-dir", str(data_dir)]
    return main(["format", *who, *arguments])


def test_standalone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fmt(tmp_path / "d", "--standalone", "-o", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    identity = load_identity(OsFileSystem(), tmp_path / "d", node_id=1, cluster_id="c1")
    assert shown["directory_id"] == uuid_to_text(identity.directory_id)
    head = CheckpointReader(tmp_path / "d" / BOOTSTRAP).verify().head
    assert head.kraft_version == 1
    (voter,) = head.voters
    assert voter.key.directory_id == identity.directory_id
    assert voter.endpoints[0].address == "127.0.0.1:9190"


def test_all_initial_voters_get_the_same_checkpoint(tmp_path: Path) -> None:
    assert fmt(tmp_path / "a", "--initial-voters", VOTERS, node_id=1) == 0
    assert fmt(tmp_path / "b", "--initial-voters", VOTERS, node_id=2) == 0
    assert (tmp_path / "a" / BOOTSTRAP).read_bytes() == (tmp_path / "b" / BOOTSTRAP).read_bytes()
    identity = load_identity(OsFileSystem(), tmp_path / "b", node_id=2)
    assert identity.directory_id == bytes([9] * 16)


def test_a_lone_bootstrap_voter_draws_its_directory_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given one, the same command would make the same voter again, without its votes."""
    lone = ("--initial-voters", f"1@n1:9190:{ID_A}")
    assert fmt(tmp_path / "d", *lone) == Exit.REFUSED
    assert "--standalone" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()
    assert fmt(tmp_path / "d", *lone, "--unsafe-lone-directory-id") == 0
    for name in ("a", "b"):
        assert fmt(tmp_path / name, "--standalone") == 0
    first, second = (
        load_identity(OsFileSystem(), tmp_path / name, node_id=1).directory_id for name in "ab"
    )
    assert first != second


def test_a_joining_node_gets_no_voters(tmp_path: Path) -> None:
    assert fmt(tmp_path / "d", "--no-initial-voters", node_id=3) == 0
    head = CheckpointReader(tmp_path / "d" / BOOTSTRAP).verify().head
    assert (head.kraft_version, head.voters) == (1, ())


def test_configured_voters_mean_kraft_version_zero(tmp_path: Path) -> None:
    assert fmt(tmp_path / "d", "--set", "bootstrap.voters=1@n1:9190") == 0
    assert CheckpointReader(tmp_path / "d" / BOOTSTRAP).verify().head.kraft_version == 0


@pytest.mark.parametrize("codec", ["native", "kafka"])
def test_levels_are_written_in_the_cluster_codec(
    tmp_path: Path, codec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--standalone", "--set", f"cluster.record_codec={codec}"]
    assert fmt(tmp_path / "d", *arguments, "--feature", "metadata.version=20") == 0
    capsys.readouterr()
    assert main(["log", "dump", "-o", "jsonl", str(tmp_path / "d" / BOOTSTRAP)]) == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    payloads = [record["payload"] for batch in documents for record in batch["records"]]
    assert {
        "type": "FEATURE_LEVEL_RECORD",
        "version": 0,
        "data": {"name": "metadata.version", "featureLevel": 20},
    } in payloads
    raw = (tmp_path / "d" / BOOTSTRAP).read_bytes()
    # Kafka's framing: its version, record type 12, record version 0, and a compact string.
    assert (b"\x01\x0c\x00\x11metadata.version" in raw) == (codec == "kafka")


def test_under_kafkas_codec_an_older_kafka_reads_the_files_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: a level that excludes older nodes is reported. Method: both defaults, and an option."""
    kafka = ("--standalone", "--set", "cluster.record_codec=kafka", "-o", "json")
    asked = ("--feature", "metadata.version=33")
    levels, messages = [], []
    for n, arguments in enumerate((("--standalone", "-o", "json"), kafka, (*kafka, *asked))):
        assert fmt(tmp_path / str(n), *arguments) == 0
        output = capsys.readouterr()
        levels.append(json.loads(output.out)["levels"])
        messages.append(output.err)
    assert levels == [{"metadata.version": level} for level in (33, 30, 33)]
    assert "Kafka" not in messages[0]
    assert "metadata.version 30: Kafka 4.3 and later read these files" in messages[1]
    assert "metadata.version 33: Kafka 4.4 and later read these files" in messages[2]


def test_formatting_twice_needs_to_be_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fmt(tmp_path / "d", "--standalone") == 0
    before = (tmp_path / "d" / "meta.properties").read_bytes()
    assert fmt(tmp_path / "d", "--standalone") == 2
    error = capsys.readouterr().err
    assert "is formatted already (nothing was changed; start its node, or name another" in error
    assert fmt(tmp_path / "d", "--standalone", "--ignore-formatted") == 0
    assert (tmp_path / "d" / "meta.properties").read_bytes() == before


def test_another_nodes_directory_is_never_taken(tmp_path: Path) -> None:
    assert fmt(tmp_path / "d", "--standalone") == 0
    assert fmt(tmp_path / "d", "--standalone", "--ignore-formatted", node_id=2) == 2


def test_a_log_without_identity_is_not_adopted(tmp_path: Path) -> None:
    directory = tmp_path / "d" / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    (directory / "00000000000000000000.log").write_bytes(b"")
    assert fmt(tmp_path / "d", "--standalone") == 2
    assert not (tmp_path / "d" / "meta.properties").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--standalone", "--no-initial-voters"),
        ("--initial-voters", f"2@n2:9190:{ID_B}"),
        ("--initial-voters", "1@n1:9190"),
        ("--initial-voters", f"1@n1:9190:{ID_A},1@n2:9190:{ID_B}"),
        ("--initial-voters", "nonsense"),
        ("--standalone", "--set", "bootstrap.voters=1@n1:9190"),
        ("--standalone", "--feature", "metadata.version=99"),
        ("--standalone", "--feature", "nonsense=1"),
        ("--standalone", "--feature", "nonsense"),
        ("--standalone", "--feature", "kraft.version=0"),
        ("--standalone", "--set", "listeners.client=127.0.0.1:0"),
    ],
)
def test_what_cannot_work_writes_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert fmt(tmp_path / "d", *arguments) == 2
    assert not (tmp_path / "d").exists()


def test_a_node_of_a_recovered_cluster_names_the_incarnation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = (uuid_to_text(byte * 16) for byte in (b"i", b"j"))
    joining = ("--no-initial-voters", "--log-incarnation")
    assert fmt(tmp_path / "d", *joining, own) == 0
    identity = load_identity(OsFileSystem(), tmp_path / "d")
    assert identity.log_incarnation_id == b"i" * 16
    assert f"log.incarnation.id={own}\n" in (tmp_path / "d/meta.properties").read_text()
    assert fmt(tmp_path / "d", *joining, own, "--ignore-formatted") == 0
    capsys.readouterr()
    assert fmt(tmp_path / "d", *joining, other, "--ignore-formatted") != 0
    shown = capsys.readouterr().err
    assert own in shown
    assert other in shown
    assert fmt(tmp_path / "e", *joining, "nonsense") == Exit.USAGE
    assert fmt(tmp_path / "f", "--standalone", "--log-incarnation", own) != 0
