"""Backups to an S3 server over HTTP: signatures, a cluster under way, and a store that fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from quorate.cli.exits import Exit
from quorate.cli.main import main
from statemachine.records import TopicRecord
from tests.integration.processes import ROOT, Ended, Processes, running
from tests.integration.traffic import write_configs
from tests.support.audit_log import AuditLog
from tests.support.s3_server import S3Server

pytestmark = pytest.mark.integration

Quorate = Callable[..., Ended]

# Botocore and s3fs try again for some ten seconds; a test of failures waits for one attempt each.
_IMPATIENT = {"AWS_MAX_ATTEMPTS": "1"}


@pytest.fixture(scope="module")
def running_store() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def store(running_store: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The store, its endpoint and credentials in the environment of this process."""
    for name, value in running_store.environment.items():
        monkeypatch.setenv(name, value)
    return running_store


@pytest.fixture
def quorate(capsys: pytest.CaptureFixture[str]) -> Quorate:
    """Run one command in this process: loading the driver anew takes longer than the rest."""

    def run(*words: object, **environment: str) -> Ended:
        # What a file system was made with is remembered by its arguments, not by the environment.
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            status = main([*map(str, words), "-o", "json"])
        captured = capsys.readouterr()
        return Ended(status, captured.out, captured.err)

    return run


def a_node(path: Path, entities: int = 30) -> AuditLog:
    log = AuditLog(path)
    log.elect(1)
    log.world(5, entities)
    log.commit()
    return log


def one_line(ended: Ended, code: Exit, words: str) -> None:
    """Goal: a person sees one line with the cause and what to do, and a script the exit code."""
    assert ended.status == code, ended.err
    (line,) = ended.err.strip().splitlines()
    assert line.startswith("error: ")
    assert words in line
    assert ended.out == ""


class Following:
    """``backup create --follow`` in a process of its own."""

    def __init__(self, store: S3Server, *words: str) -> None:
        self._lines: list[str] = []
        self._changed = threading.Condition()
        # A shell's background job ignores SIGINT, and so would what this process starts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "quorate", *words],
                env={**os.environ, "PYTHONPATH": str(ROOT), **store.environment, **_IMPATIENT},
                stderr=subprocess.PIPE,
                text=True,
            )
        finally:
            signal.signal(signal.SIGINT, before)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()

    def until(self, words: str, seconds: float = 300) -> None:
        """Wait for a line with these words, behind the one that was waited for before."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: any(words in each for each in self._lines), seconds
            )
            assert found, (words, self._lines)
            while words not in self._lines.pop(0):
                pass

    def stop(self) -> int:
        self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(90)
        finally:
            # The thread ends with the process: without this, a failure would hang the whole run.
            self._process.kill()
            self._process.wait()
            self._reader.join()
            assert self._process.stderr is not None
            self._process.stderr.close()


def test_a_cluster_is_archived_restored_and_goes_on(
    store: S3Server, quorate: Quorate, tmp_path: Path
) -> None:
    """Goal: every command by URL; the archive survives a store that is away for a while."""
    url = f"s3://{store.bucket}/archive"
    with running(tmp_path, voters=1) as cluster:
        write_configs(cluster, ["1", "2"])
        following = Following(
            store,
            "--bootstrap", ",".join(cluster.addresses), "backup", "create", url, "--follow", "0.5",
        )  # fmt: skip
        try:
            following.until("bytes added")
            write_configs(cluster, ["3"])
            following.until("up to offset")
            store.stop()
            write_configs(cluster, ["4"])
            following.until("trying again in 0.5 s")
            store.start()
            following.until("up to offset")
        finally:
            assert following.stop() == Exit.INTERRUPTED
        created = archived(cluster, store, url)
        assert created["start_offset"] == 0
        verified = quorate("backup", "verify", url).json
        assert (verified["is_intact"], verified["bytes"]) == (True, created["bytes"])
        assert verified["end_offset"] == created["end_offset"]
        drilled = quorate("backup", "drill", url).json
        assert (drilled["is_equal"], drilled["state_digest"]) == (True, created["state_digest"])
        cluster_id = str(created["cluster_id"])
        home = tmp_path / "restored"
        restored = quorate(
            "backup", "restore", url, home, "--node-id", 1, "--endpoint", "127.0.0.1:19093",
            "--cluster-id", cluster_id,
        ).json  # fmt: skip
        assert restored["restored_to"] == created["end_offset"]
        assert quorate("log", "verify", home).json["is_intact"] is True
        past = tmp_path / "past"
        quorate("backup", "extract", url, past)
        counted = quorate("state", past, "--count").json
        assert counted["state_digest"] == created["state_digest"]


def archived(cluster: Processes, store: S3Server, url: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.run(
        "--bootstrap", ",".join(cluster.addresses), "-o", "json", "backup", "create", url,
        environment=store.environment,
    ).json  # fmt: skip
    return found


def test_credentials_buckets_and_servers_that_do_not_work(
    store: S3Server, quorate: Quorate, tmp_path: Path
) -> None:
    home = a_node(tmp_path / "node").home
    url = f"s3://{store.bucket}/refused"
    before = store.names()
    for command in (("create", url, "--from", home), ("verify", url), ("drill", url)):
        ended = quorate("backup", *command, AWS_SECRET_ACCESS_KEY="wrong")
        one_line(ended, Exit.REFUSED, "signature we calculated does not match")
    ended = quorate("backup", "verify", url, AWS_ACCESS_KEY_ID="unknown")
    one_line(ended, Exit.REFUSED, "does not exist in our records")
    missing = "s3://no-such-bucket/quorate"
    for command in (("create", missing, "--from", home), ("verify", missing), ("drill", missing)):
        ended = quorate("backup", *command)
        one_line(ended, Exit.NOT_FOUND, "there is no bucket 'no-such-bucket'")
    one_line(quorate("backup", "verify", url), Exit.NOT_FOUND, "no complete backup")
    store.stop()
    try:
        for command in (("create", url, "--from", home), ("verify", url)):
            ended = quorate("backup", *command, **_IMPATIENT)
            one_line(ended, Exit.UNREACHABLE, "Could not connect to the endpoint")
            assert "run it again" in ended.err
    finally:
        store.start()
    assert store.names() == before, "nothing was written"


def test_a_store_that_goes_away_at_any_write(
    store: S3Server, quorate: Quorate, tmp_path: Path
) -> None:
    """Goal: what is there before the manifest is no backup; the next run completes it."""
    log = a_node(tmp_path / "node")
    url = f"s3://{store.bucket}/interrupted"
    prefix = "interrupted/"

    def stored() -> set[str]:
        return {each for each in store.names() if each.startswith(prefix)}

    def created(**environment: str) -> Ended:
        return quorate("backup", "create", url, "--from", log.home, **environment)

    for writes in (0, 1):
        store.fail_after(writes)
        one_line(created(**_IMPATIENT), Exit.UNREACHABLE, "cannot write")
        store.heal()
        assert len(stored()) == writes
        one_line(quorate("backup", "verify", url), Exit.NOT_FOUND, "no complete backup")
        one_line(quorate("backup", "drill", url), Exit.NOT_FOUND, "no complete backup")
    first = created().json
    log.command(TopicRecord("later", b"l" * 16))
    end = log.commit()
    for writes in (0, 1):
        store.fail_after(writes)
        one_line(created(**_IMPATIENT), Exit.UNREACHABLE, "cannot write")
        store.heal()
        verified = quorate("backup", "verify", url).json
        assert (verified["is_intact"], verified["end_offset"]) == (True, first["end_offset"])
    assert created().json["end_offset"] == end
    assert quorate("backup", "verify", url).json["is_intact"] is True
    assert len(stored()) == 4, "two manifests and their chunks"
