"""Power is lost behind every change of the disk that the storage code makes, in every place.

The places are found in the source (``tests.support.crash_sites``). The scripts below form a node,
vote, append, cut, take and fetch checkpoints, set damage aside, recover, restore, and change hands
with Kafka. Each change they make is a crash, in each way a disk may treat what was not synced.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from quorate.adoption.adopt import adopt, plan_adoption
from quorate.adoption.release import plan_release, release
from quorum.log.identity import load_identity
from quorum.log.layout import (
    META_PROPERTIES_NAME,
    segment_path,
)
from simulation.memory_filesystem import KEEP_ALL, LOSE_ALL, CrashMode
from statemachine.records import FeatureLevelRecord, TopicRecord
from tests.support.crash_scripts import MODES, Script, Step, again, check, crashes, go_on, states
from tests.support.crash_sites import (
    Site,
    WatchedFileSystem,
    changes_beside_the_ports,
    changing_files,
    sites,
    sites_of,
    storage_code,
)
from tests.support.kafka_directory import KafkaDirectory
from tests.support.recovery_script import RECOVERY_SCRIPT
from tests.support.repair_script import REPAIR_SCRIPT
from tests.support.restore_script import restoring
from tests.support.storage_script import (
    HOME,
    LOG,
    ME,
    NODE_SCRIPT,
    format_node,
    nothing_invented,
    opened,
    read_node,
    start_node,
    vote,
)

OUT_OF_ORDER = CrashMode(reordered=True, keep_writes=0.5, keep_names=0.5)
KAFKA_STATE = (
    '{"leaderId":2,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    '"data_version":1}'
)


def read_formatted(fs: WatchedFileSystem) -> object:
    if not fs.exists(HOME / META_PROPERTIES_NAME):
        return None
    return load_identity(fs, HOME), read_node(fs)


FORMED = Script(
    prepare=lambda fs: fs.make_directory(HOME.parent),
    read=read_formatted,
    steps=(
        Step(format_node),
        vote(1),
    ),
)
"""An empty folder becomes a node's directory, or is still none."""


def copied(fs: WatchedFileSystem, folder: Path) -> None:
    """Put the files of ``folder`` on the disk, all of them durable."""
    fs.make_directory(LOG)
    for path in folder.rglob("*"):
        if path.is_file():
            fs.write_bytes(HOME / path.relative_to(folder), path.read_bytes())


def read_either(fs: WatchedFileSystem) -> tuple[bool, bytes]:
    """Whether the directory is ours, and its one segment, which must be whole in any case."""
    is_ours = plan_adoption(fs, HOME, ME.directory_id).is_done
    if is_ours:
        node = opened(fs)
        assert not node.report.losses
        node.log.close()
    return is_ours, fs.read_bytes(segment_path(LOG, 10))


def changing_hands(folder: Path) -> Script:
    """Return a script that adopts a Kafka controller's directory and gives it back, twice."""
    kafka = KafkaDirectory(folder, start=10, cluster_id="abc", voters=3)
    kafka.batch(FeatureLevelRecord("metadata.version", 20))
    kafka.batch(TopicRecord("t", b"T" * 16))
    (kafka.partition / "quorum-state").write_text(KAFKA_STATE)
    for end in (12, 13):
        kafka.checkpoint(end, FeatureLevelRecord("metadata.version", 20))
    theirs = Step(lambda fs: release(fs, plan_release(fs, HOME)))
    ours = Step(lambda fs: adopt(fs, plan_adoption(fs, HOME, ME.directory_id)))

    def changed_by_kafka(fs: WatchedFileSystem) -> None:
        """Kafka has run on a directory of ours: side files are left, its state is its own."""
        if plan_adoption(fs, HOME, ME.directory_id).is_done:
            fs.write_bytes(LOG / "quorum-state", KAFKA_STATE.encode())

    started = Step(changed_by_kafka)
    return Script(
        prepare=lambda fs: copied(fs, folder),
        read=read_either,
        steps=(ours, theirs, ours, started, ours, theirs),
    )


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Script]:
    theirs = tmp_path_factory.mktemp("kafka") / "n1"
    return {
        "node": NODE_SCRIPT,
        "repairs": REPAIR_SCRIPT,
        "recovery": RECOVERY_SCRIPT,
        "formed": FORMED,
        "changing hands": changing_hands(theirs),
        "restore": restoring(tmp_path_factory.mktemp("backup")),
    }


def through(script: Script, mode: CrashMode, *, stride: int) -> set[tuple[str, int] | None]:
    """Check every crash, and go on after every ``stride``-th; return where power was lost.

    Behind those, power is also lost a second time, at every point of the start that follows.
    """
    expected, reached = states(script), set()
    for number, crash in enumerate(crashes(script, mode)):
        reached.add(crash.lost_at)
        if number % stride == 0:
            for lost_at, second in again(script, crash, mode):
                reached.add(lost_at)
                check(script, expected, second)
        check(script, expected, crash)
        if number % stride == 0:
            go_on(script, expected, crash)
    return reached


@pytest.mark.parametrize("name", ["formed", "changing hands", "recovery", "restore"])
def test_forming_and_changing_hands(scripts: dict[str, Script], name: str) -> None:
    """Goal: it is one thing or the other. Method: lose power everywhere, once or twice."""
    assert len(through(scripts[name], LOSE_ALL, stride=5)) > 10


ON_A_FULL_DISK = {
    ("quorum/log/epoch_file.py", "self._fs.unlink"),
    ("quorum/log/epoch_file.py", "self._fs.sync_directory"),
}
"""Only a full disk leads there; ``test_full_disk_points`` loses power behind each."""


@pytest.mark.parametrize(
    "stride",
    [pytest.param(17, marks=pytest.mark.long), pytest.param(7, marks=pytest.mark.nightly)],
)
def test_every_place_that_changes_the_disk_is_a_crash_point(
    scripts: dict[str, Script], stride: int
) -> None:
    """Goal: no place without a crash. Method: all scripts and modes; compare with the source."""
    reached: set[tuple[str, int] | None] = set()
    for script in scripts.values():
        for mode in MODES.values():
            reached |= through(script, mode, stride=stride)
    places = {(site.file, site.line): site for site in sites()}
    assert reached - places.keys() == set(), "power was lost in a place that is not in the list"
    missed = sorted(
        site
        for place, site in places.items()
        if place not in reached and (site.file, site.call) not in ON_A_FULL_DISK
    )
    assert missed == [], "no script loses power there"


ELSEWHERE = {
    "quorate/backup/storage.py",  # the target of a backup: tests/unit/backup/test_backup.py
    "quorate/broker_agent/log_directory.py",  # a broker's folders: tests/unit/broker_agent
    "quorate/certificates/authority.py",  # keeps and removes certificates: tests/unit/certificates
    "quorate/certificates/files.py",
    "quorate/cli/backup.py",  # these three make the folder that was named, and write no file
    "quorate/cli/backup_restore.py",
    "quorate/cli/snapshot_create.py",
    "quorate/doctor/checks.py",
}
"""Files that change a disk, and neither log nor checkpoint, epoch, vote or identity."""


def test_storage_code_is_nowhere_else() -> None:
    """Goal: a new file that writes is noticed. Method: look for such calls in all of the code."""
    assert changing_files() - {site.file for site in sites()} == ELSEWHERE


BESIDE_THE_PORTS = {
    # The lock of a directory: an empty file, of which nothing is read.
    ("quorum/log/directory_lock.py", "os.open"),
}


def test_storage_code_goes_through_the_ports() -> None:
    """Goal: no change of the disk that no crash can reach. Method: look for the library's calls."""
    found = {
        (site.file, site.call)
        for each in storage_code().items()
        for site in changes_beside_the_ports(*each)
    }
    assert found == BESIDE_THE_PORTS


@pytest.mark.parametrize(
    "line",
    [
        "os.replace(a, b)", "os.fsync(fd)", "os.pwrite(fd, data, 0)", "os.ftruncate(fd, 0)",
        "os.open(path, flags)", "os.open(path, os.O_WRONLY | os.O_CREAT)", "path.write_bytes(data)",
        "path.write_text(text)", "path.open('ab')", "path.open(mode='r+b')", "open(path, 'w')",
        "open(path, mode)", "made.replace(path)", "shutil.move(a, b)", "path.touch()",
    ],
)  # fmt: skip
def test_a_change_beside_the_ports_would_be_noticed(line: str) -> None:
    assert len(changes_beside_the_ports("x.py", ast.parse(line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "os.open(path, os.O_RDONLY | os.O_CLOEXEC)", "open(path)", "open(path, 'rb')",
        "path.open('rb')", "fs.open(path, create=True)", "fs.open(path, writable=True)",
        "text.replace('a', 'b')", "replace(state, epoch=1)", "path.read_bytes()",
    ],
)  # fmt: skip
def test_what_only_reads_is_no_change(line: str) -> None:
    assert changes_beside_the_ports("x.py", ast.parse(line)) == []


@pytest.mark.long
@pytest.mark.parametrize("script", [NODE_SCRIPT, REPAIR_SCRIPT], ids=["node", "repairs"])
def test_what_a_start_has_found_is_durable(script: Script) -> None:
    """Goal: a node answers only for what it keeps. Method: the process dies in every place, a
    start finds what it left unsynced, and then power is lost.
    """
    for crash in crashes(script, KEEP_ALL):
        found, _ = start_node(crash.fs)
        crash.fs.crash(random.Random(crash.number), LOSE_ALL)
        assert read_node(crash.fs) == found, crash[:3]


@pytest.mark.long
def test_bytes_written_out_of_order_are_never_believed() -> None:
    """Goal: what is lost is remembered. Method: unsynced writes survive in any subset."""
    expected = states(NODE_SCRIPT)
    for crash in crashes(NODE_SCRIPT, OUT_OF_ORDER):
        check(NODE_SCRIPT, expected, crash, nothing_invented)


def test_a_new_place_would_be_noticed() -> None:
    """Goal: the list is not empty by accident. Method: look up known places, and add one."""
    assert {site.file for site in sites()} >= {
        "quorum/log/segmented_log.py",
        "quorum/log/side_file.py",
        "snapshot/writer.py",
        "quorate/formatting.py",
        "quorate/backup/unpack.py",
    }
    added = ast.parse("def f(fs, rows):\n    rows.append(1)\n    fs.unlink('x')\n")
    assert sites_of("x.py", added) == [Site("x.py", 3, "fs.unlink")]
