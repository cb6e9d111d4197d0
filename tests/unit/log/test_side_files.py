"""Small files: their content survives crashes, and damage in them is detected."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from quorum.errors import (
    ElectionStateError,
    IdentityDamagedError,
    IdentityError,
    StorageError,
)
from quorum.log.directory_lock import LOCK_NAME, DirectoryInUseError, DirectoryLock
from quorum.log.election_store import ElectionFile, decode_election_state, encode_election_state
from quorum.log.epoch_file import decode_epochs, encode_epochs
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import (
    MetaProperties,
    check_partition_metadata,
    is_reserved_directory_id,
    load_foreign_identity,
    load_identity,
    parse_properties,
    write_identity,
)
from quorum.log.layout import partition_directory
from quorum.log.side_file import replace_file, seal, unseal
from quorum.types import (
    ZERO_UUID,
    ElectionState,
    EpochStart,
    OffsetAndEpoch,
    ReplicaKey,
    draw_directory_id,
    uuid_from_text,
)
from simulation.memory_filesystem import CrashMode, Faults, MemoryFileSystem, PowerLost

HOME = Path("/node")
NO_PARTITION_METADATA = "not a partition.metadata file of version 0"
DISK = uuid_from_text("XHhkr4tkSsD900pOQ8pPfg")
STATES = [
    ElectionState(),
    ElectionState(epoch=3, leader_id=2),
    ElectionState(epoch=4, voted=ReplicaKey(1, DISK)),
    ElectionState(epoch=5, leader_id=1, voted=ReplicaKey(3, DISK)),
    ElectionState(epoch=6, voted=ReplicaKey(0), vote_floor=OffsetAndEpoch(100, 5)),
]


@pytest.fixture
def fs():
    fs = MemoryFileSystem()
    fs.make_directory(HOME)
    return fs


# ---------------------------------------------------------------------- quorum-state


@pytest.mark.parametrize("state", STATES)
def test_election_state_round_trips(fs, state):
    store = ElectionFile(fs, HOME)
    assert store.load() == ElectionState()
    store.save(state)
    fs.crash(random.Random(0))
    assert ElectionFile(fs, HOME).load() == state


def test_the_first_line_is_what_kafka_writes():
    state = ElectionState(epoch=2, voted=ReplicaKey(1, DISK))
    assert encode_election_state(state) == (
        '{"leaderId":-1,"leaderEpoch":2,"votedId":1,'
        '"votedDirectoryId":"XHhkr4tkSsD900pOQ8pPfg","data_version":1}'
    )


@pytest.mark.parametrize(
    ("line", "state"),
    [
        (
            '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
            '"currentVoters":[{"voterId":1}],"data_version":0}',
            ElectionState(epoch=2, leader_id=1),
        ),
        (
            '{"leaderEpoch":7,"votedId":3,"data_version":0}',
            ElectionState(epoch=7, voted=ReplicaKey(3)),
        ),
        ('{"data_version":1}', ElectionState()),
    ],
)
def test_kafkas_files_are_read_by_tools_only(fs, line, state):
    fs.write_bytes(HOME / "quorum-state", line.encode())
    store = ElectionFile(fs, HOME)
    assert store.load_foreign() == state
    with pytest.raises(ElectionStateError, match="no checksum"):
        store.load()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"leaderId":1,"data_version":2}', "data_version 2"),
        ('{"leaderId":1,"data_version":-1}', "data_version -1"),
        ('{"leaderId":1,"data_version":true}', "data_version True"),
        ('{"leaderId":1}', "data_version None"),
        ("[]", "not a JSON object"),
        ("", "Expecting value"),
        ("[" * 100_000, "nested"),
        ('{"leaderEpoch":"2","data_version":1}', "leaderEpoch is '2'"),
        ('{"leaderEpoch":-2,"data_version":1}', "leaderEpoch is -2"),
        ('{"votedId":1,"votedDirectoryId":"short","data_version":1}', "not a base64url"),
        ('{"votedId":1,"votedDirectoryId":7,"data_version":1}', "votedDirectoryId"),
        ('{"voteFloorOffset":5,"data_version":1}', "voteFloorEpoch is None"),
    ],
)
def test_unusable_election_state_is_an_error_with_the_path(fs, line, reason):
    fs.write_bytes(HOME / "quorum-state", seal(line))
    with pytest.raises(ElectionStateError, match=reason) as caught:
        ElectionFile(fs, HOME).load()
    assert caught.value.path == HOME / "quorum-state"


def test_a_crash_anywhere_in_a_save_leaves_the_old_or_the_new_state(fs):
    old, new = STATES[2], STATES[3]
    seen = set()
    for mode in (
        CrashMode(),
        CrashMode(keep_writes=1.0, torn=True, keep_names=1.0),
        CrashMode(reordered=True, keep_writes=0.5, keep_names=0.5),
    ):
        for call in range(20):
            disk = MemoryFileSystem()
            disk.make_directory(HOME)
            store = ElectionFile(disk, HOME)
            store.save(old)
            disk.faults = Faults(stop_after_call=call)
            is_done = False
            try:
                store.save(new)
                is_done = True
            except PowerLost:
                pass
            disk.crash(random.Random(call), mode)
            state = ElectionFile(disk, HOME).load()
            assert state in ((new,) if is_done else (old, new))
            seen.add((is_done, state == new))
    assert seen == {(False, False), (False, True), (True, True)}


def test_a_nested_document_is_refused_not_a_crash():
    with pytest.raises(ValueError, match="nested"):
        decode_election_state('{"a":' * 100_000)


# ---------------------------------------------------------------------- meta.properties


def test_identity_round_trips_and_reads_as_kafkas(fs):
    identity = MetaProperties("q1w2e3r4t5y6u7i8o9p0", 3, DISK)
    write_identity(fs, HOME, identity)
    fs.crash(random.Random(0))
    assert load_identity(fs, HOME) == identity
    assert load_identity(fs, HOME, node_id=3, cluster_id="q1w2e3r4t5y6u7i8o9p0") == identity
    assert load_foreign_identity(fs, HOME) == identity
    text = fs.read_bytes(HOME / "meta.properties").decode()
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        "cluster.id=q1w2e3r4t5y6u7i8o9p0",
        "directory.id=XHhkr4tkSsD900pOQ8pPfg",
        "node.id=3",
        "version=1",
    ]


def test_another_nodes_or_clusters_directory_is_refused(fs):
    with pytest.raises(IdentityError, match="not formatted"):
        load_identity(fs, HOME)
    write_identity(fs, HOME, MetaProperties("alpha", 3, DISK))
    with pytest.raises(IdentityError, match="belongs to node 3, not to node 4"):
        load_identity(fs, HOME, node_id=4)
    with pytest.raises(IdentityError, match="belongs to cluster alpha, not to cluster beta"):
        load_identity(fs, HOME, cluster_id="beta")


def test_an_identity_that_is_missing_beside_a_log_was_lost(fs):
    """Damage (exit code 8); that a directory was never formatted is a mistake of the caller."""
    partition = partition_directory(HOME)
    fs.make_directory(partition)
    with pytest.raises(IdentityError, match="not formatted") as caught:
        load_identity(fs, HOME)
    assert not isinstance(caught.value, IdentityDamagedError)
    replace_file(fs, partition / "00000000000000000000.log", b"")
    with pytest.raises(IdentityDamagedError, match="missing beside a metadata log"):
        load_identity(fs, HOME)


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        (MetaProperties("", 1, DISK), "cluster id"),
        (MetaProperties("two\nlines", 1, DISK), "cluster id"),
        (MetaProperties("c", -1, DISK), "node id -1"),
        (MetaProperties("c", 1 << 31, DISK), "node id"),
        (MetaProperties("c", 1, ZERO_UUID), "reserved"),
        (MetaProperties("c", 1, bytes(15) + b"\x63"), "reserved"),
    ],
)
def test_an_identity_without_a_node_is_not_written(fs, identity, reason):
    with pytest.raises(IdentityError, match=reason):
        write_identity(fs, HOME, identity)
    assert fs.list_directory(HOME) == []


def test_every_flipped_bit_of_the_identity_is_noticed(fs):
    """By servers and by tools; except in the empty comment line, which has no meaning."""
    write_identity(fs, HOME, MetaProperties("alpha", 3, DISK))
    path = HOME / "meta.properties"
    whole = fs.read_bytes(path)
    for position in range(2, len(whole)):
        for bit in range(8):
            fs.write_bytes(path, whole)
            fs.flip_bit(path, position, bit)
            with pytest.raises(IdentityError):
                load_identity(fs, HOME)
            with pytest.raises(IdentityError):
                load_foreign_identity(fs, HOME)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version=0\nbroker.id=7\n", MetaProperties("", 7, ZERO_UUID)),
        ("broker.id=7\ncluster.id=c\n", MetaProperties("c", 7, ZERO_UUID)),
        ("#x\nversion=1\nnode.id=7\ncluster.id=a\\=b\\:c\n", MetaProperties("a=b:c", 7, ZERO_UUID)),
    ],
)
def test_foreign_identities_of_both_versions_are_read(fs, text, expected):
    fs.write_bytes(HOME / "meta.properties", text.encode())
    assert load_foreign_identity(fs, HOME) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=1\nnode.id=7\n", "cluster.id is missing"),
        ("version=0\n", "node.id is missing"),
        ("garbage\n", "node.id is missing"),
        ("version=one\nnode.id=7\n", "version one; this release reads 0 and 1"),
        ("version=1\nnode.id=x\ncluster.id=a\n", "node.id 'x' is no number"),
        ("version=2\nnode.id=7\ncluster.id=c\n", "version 2"),
        ("version=1\nnode.id=1\ncluster.id=c\ndirectory.id=zz\n", "base64url"),
        ("version=1\\\n", "continuation"),
    ],
)
def test_malformed_foreign_identities_are_errors(fs, text, reason):
    fs.write_bytes(HOME / "meta.properties", text.encode())
    with pytest.raises(IdentityError, match=reason):
        load_foreign_identity(fs, HOME)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", NO_PARTITION_METADATA),
        (b"garbage\n", NO_PARTITION_METADATA),
        (b"\xff\xfe\x00", NO_PARTITION_METADATA),
        (b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", NO_PARTITION_METADATA),
        (b"version: 0\ntopic_id: x", "not a base64url uuid: 'x'"),
        (
            b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg",
            "belongs to topic AAAAAAAAAAAAAAAAAAAAAg",
        ),
    ],
)
def test_a_damaged_partition_metadata_is_an_error_in_words(fs, data, reason):
    fs.write_bytes(HOME / "partition.metadata", data)
    with pytest.raises(IdentityDamagedError, match=re.escape(reason)):
        check_partition_metadata(fs, HOME)


def test_drawn_directory_ids_are_never_reserved_or_taken_for_options():
    draws = iter([b"\xf8" + bytes(15), b"\x07" + bytes(15)])
    drawn = draw_directory_id(lambda size: next(draws)[:size])
    assert drawn[0] == 7
    assert not is_reserved_directory_id(drawn)
    assert is_reserved_directory_id(bytes(15) + b"\x63")
    assert not is_reserved_directory_id(bytes(15) + b"\x64")


def test_properties_skip_comments_and_blank_lines():
    assert parse_properties("# a\n! b\n\n k = v \nempty=\n") == {"k": "v", "empty": ""}


# ---------------------------------------------------------------------- the rest


@pytest.mark.parametrize(
    "entries", [(), (EpochStart(1, 0),), (EpochStart(1, 0), EpochStart(5, 7), EpochStart(6, 90))]
)
def test_epoch_history_round_trips(entries):
    assert decode_epochs(encode_epochs(entries)) == entries


@pytest.mark.parametrize("data", [b"", b"0\n", b"0"])
def test_an_epoch_file_with_no_entries_is_empty(data):
    assert decode_epochs(data) == ()


@pytest.mark.parametrize(
    "data", [b"1\n0\n", b"0\nx\n", b"0\n1\n", b"0\n1\n1 2 3\n", b"0\n2\n1 5\n2 5\n", b"\xff"]
)
def test_malformed_epoch_files_are_errors(data):
    with pytest.raises(ValueError):
        decode_epochs(data)


def test_a_seal_covers_every_byte():
    whole = seal("content")
    assert unseal(whole) == "content"
    for spoiled in (whole[:-1], whole + b"x", whole.replace(b"con", b"c0n"), b"content"):
        with pytest.raises(ValueError, match="checksum"):
            unseal(spoiled)


def test_one_process_at_a_time(tmp_path):
    lock = DirectoryLock(tmp_path)
    with pytest.raises(StorageError, match="in use by another process"):
        DirectoryLock(tmp_path)
    lock.release()
    lock.release()
    with DirectoryLock(tmp_path):
        pass
    with pytest.raises(StorageError, match="cannot open the lock file"):
        DirectoryLock(tmp_path / "missing")


def test_readers_share_a_lock_and_write_nothing(tmp_path):
    with pytest.raises(StorageError, match="cannot open the lock file"):
        DirectoryLock(tmp_path, is_shared=True)
    assert not list(tmp_path.iterdir())
    (tmp_path / LOCK_NAME).touch(mode=0o400)
    with DirectoryLock(tmp_path, is_shared=True), DirectoryLock(tmp_path, is_shared=True):
        with pytest.raises(DirectoryInUseError):
            DirectoryLock(tmp_path)
    with DirectoryLock(tmp_path), pytest.raises(DirectoryInUseError):
        DirectoryLock(tmp_path, is_shared=True)


def test_real_disk_errors_are_translated(tmp_path):
    """/dev/full refuses every write with ENOSPC."""
    from quorum.errors import DiskFullError

    with pytest.raises(DiskFullError, match="/dev/full"):
        OsFileSystem().open(Path("/dev/full"), writable=True).write_at(0, b"x")
    fs = OsFileSystem()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="create directory"):
        fs.make_directory(tmp_path / "file")
    with pytest.raises(StorageError, match="list"):
        fs.list_directory(tmp_path / "file")
