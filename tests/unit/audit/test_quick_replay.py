"""A replay that only updates the state has the effects of one that is observed, and of a replica's.

Nothing of a record is left unchecked by it: it decodes what a replica decodes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.directory import plan_source
from audit.plan import ReadPlan
from audit.replay import batches_of
from audit.scan import Scan
from bench.mixed_log import write_mixed_log
from quorum.batch import encode_batch
from quorum.errors import CorruptBatchError, LogDamagedError
from statemachine.codec import encode_kafka, encode_record
from statemachine.dump import state_digest
from statemachine.image import MetadataImage
from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    InitProducerRecord,
    MetadataRecord,
)
from tests.support.audit_log import AuditLog


def replayed(plan: ReadPlan, *, observe: bool) -> MetadataImage:
    scan = Scan()
    for batch in batches_of(plan, 0, plan.end_offset):
        scan.take(batch, observe=observe)
    return scan.image()


TRANSACTION: tuple[tuple[MetadataRecord, ...], ...] = (
    (BeginTransactionRecord("t"), ConfigRecord(2, "a", "k", "1")),
    (ConfigRecord(2, "a", "k", "2"),),
)
ENDS: tuple[tuple[MetadataRecord, ...], ...] = (
    (EndTransactionRecord(),),
    (AbortTransactionRecord(),),
)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 40), end=st.sampled_from(ENDS))
def test_any_world_replays_alike(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    steps: int,
    end: tuple[MetadataRecord, ...],
) -> None:
    """Goal: one effect per record, also in and behind a transaction that ends or is aborted."""
    log = AuditLog(tmp_path_factory.mktemp("any") / "node", segment_bytes=3000)
    log.elect(1)
    world = log.world(seed, steps, reuses_names=True)
    before = log.machine.image
    for records in TRANSACTION:
        log.command(*records, principal="User:t")
        log.commit()
        inside = plan_source(log.home)
        assert replayed(inside, observe=False) == replayed(inside, observe=True) == before
    log.command(*end, principal="User:t")
    log.more(world, 5)
    log.commit()
    plan = plan_source(log.home)
    quick = replayed(plan, observe=False)
    assert quick == replayed(plan, observe=True) == log.machine.image
    assert state_digest(quick) == state_digest(log.machine.image)


def test_a_log_of_the_real_controller_replays_alike(tmp_path: Path) -> None:
    """Goal: producers, answers, requests and derived changes, as a leader writes them."""
    written = write_mixed_log(tmp_path / "node", 400_000, topics=40)
    assert written.refused == 0
    plan = plan_source(tmp_path / "node")
    quick = replayed(plan, observe=False)
    assert quick == replayed(plan, observe=True)
    assert state_digest(quick) == written.state_digest
    assert len(quick.producers.states) > 60
    assert any(state.applied for state in quick.producers.states.values())


def produced(
    log: AuditLog, headers: tuple[tuple[str, bytes | None], ...], sequence: int, value: bytes
) -> None:
    base = log.end
    data = encode_batch(
        [value], base_offset=base, epoch=1, timestamp=base, producer_id=7, producer_epoch=0,
        base_sequence=sequence, headers=headers,
    )  # fmt: skip
    log.log.append(data, base_offset=base, end_offset=base + 1)


@pytest.mark.parametrize("is_kafka", [False, True])
def test_headers_reach_the_state_wherever_the_codec_has_them(
    tmp_path: Path, *, is_kafka: bool
) -> None:
    """Goal: owner, answer and fingerprint count, in record headers and in Kafka's values."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.command(InitProducerRecord(7, 0), principal="User:p")
    headers = (
        ("open", b"0"),
        ("fingerprint", b"f" * 16),
        ("answer", b"\x81\xa1a" + b"\xc4\x50" + b"x" * 80),
    )
    record = ConfigRecord(2, "a", "k", "1")
    value = encode_kafka(record, headers=headers) if is_kafka else encode_record(record)
    produced(log, () if is_kafka else headers, 0, value)
    log.commit()
    plan = plan_source(log.home)
    quick = replayed(plan, observe=False)
    assert quick == replayed(plan, observe=True)
    state = quick.producers.states[7]
    assert state.owner
    assert [(each.answer, each.fingerprint) for each in state.applied] == [
        (headers[2][1], headers[1][1])
    ]


@pytest.mark.parametrize("observe", [False, True])
@pytest.mark.parametrize(
    ("sequence", "value", "problem"),
    [
        (0, b"\x93\x04\x00\xc0", "ConfigRecord|needed|type"),
        (0, b"\x92\xcd\x7f\xff\x00", "unknown record type 32767"),
        (0, b"\xff", "first byte 0xff"),
        (-1, encode_record(ConfigRecord(2, "a", "k", "2")), "sequence -1"),
    ],
    ids=["short", "unknown", "none", "sequence"],
)
def test_what_contradicts_is_found_and_placed(
    tmp_path: Path, *, observe: bool, sequence: int, value: bytes, problem: str
) -> None:
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.command(InitProducerRecord(7, 0), principal="User:p")
    offset = log.end
    produced(log, (("open", b"0"),), sequence, value)
    log.commit()
    with pytest.raises(LogDamagedError, match=problem) as caught:
        replayed(plan_source(log.home), observe=observe)
    assert (caught.value.offset, caught.value.position > 0) == (offset, True)
    assert str(caught.value.path).endswith(".log")


def test_a_byte_that_changes_behind_the_verification_of_the_files_is_found(tmp_path: Path) -> None:
    """Goal: the replay proves each checksum itself, though the files were read before it."""
    log = AuditLog(tmp_path / "node")
    log.elect(1)
    log.world(1, 5)
    log.commit()
    plan = plan_source(log.home)
    path = Path(plan.segments[0].path)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptBatchError, match="checksum"):
        replayed(plan, observe=False)
