"""What must hold after any number of kills, checked against the files and images of all nodes.

Pure: takes what was written, what was read, and returns one sentence per violation, so that the
checker itself can be shown to fail.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quorum.batch import iterate_records, scan_batches
from quorum.log.readonly import open_readonly
from tests.integration.write_load import Ledger, Outcome, write_key

READ_BYTES = 1 << 20
SHOWN_MAX = 10


@dataclass(slots=True)
class NodeLog:
    """The committed records of one node's files: offset to (epoch, value)."""

    start_offset: int
    end_offset: int
    records: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_log(data_dir: Path, end_offset: int) -> NodeLog:
    """Everything below ``end_offset`` from the files of a node that does not run."""
    log = open_readonly(data_dir)
    try:
        found = NodeLog(log.start.offset, min(log.end.offset, end_offset))
        found.problems = list(log.problems)
        offset = found.start_offset
        while offset < found.end_offset:
            data = log.read(offset, READ_BYTES, end_offset=found.end_offset)
            headers = scan_batches(data)
            for header in headers:
                for record in iterate_records(data, header):
                    found.records[record.offset] = (
                        header.epoch,
                        b"" if header.is_control else record.value or b"",
                    )
            offset = headers[-1].end_offset
        return found
    finally:
        log.close()


def keys_in(values: Iterable[bytes]) -> Counter[str]:
    """How often each write of the load is among records."""
    keys = (write_key(value) for value in values if value)
    return Counter(key for key in keys if key is not None)


def write_violations(ledger: Ledger, found: Mapping[str, int], *, where: str) -> list[str]:
    """Whether each write is there as often as its outcome allows."""
    lost, twice, ghosts = [], [], []
    for key, outcome in ledger.outcomes.items():
        times = found.get(key, 0)
        if outcome is Outcome.ACKNOWLEDGED and times == 0:
            lost.append(f"{key} (offset {ledger.offsets[key]})")
        if times > 1:
            twice.append(f"{key}: {times} times")
        if times and outcome in (Outcome.REFUSED, Outcome.NEVER_SENT):
            ghosts.append(f"{key}: {outcome.value}")
    strangers = [key for key in found if key not in ledger.outcomes]
    return [
        *_said(f"acknowledged but lost from {where}", lost),
        *_said(f"written more than once in {where}", twice),
        *_said(f"in {where} although it cannot be", ghosts),
        *_said(f"in {where} although nobody wrote it", strangers),
    ]


def log_violations(
    logs: Mapping[int, NodeLog], history: Mapping[int, tuple[int, bytes]]
) -> list[str]:
    """Return where files differ from each other or from the reads during the run."""
    violations = [
        f"node {node_id}: {problem}" for node_id, log in logs.items() for problem in log.problems
    ]
    for node_id, log in logs.items():
        for offset, (epoch, value) in log.records.items():
            seen = history.get(offset)
            if value and seen is not None and seen != (epoch, value):
                violations.append(
                    f"node {node_id}: offset {offset} of epoch {epoch} differs from what a reader "
                    f"was given in epoch {seen[0]}"
                )
                break
        gone = [
            offset
            for offset in history
            if log.start_offset <= offset < log.end_offset and offset not in log.records
        ]
        violations += _said(f"node {node_id}: read before, gone now", map(str, gone))
    ends = {log.end_offset for log in logs.values()}
    if len(ends) > 1:
        violations.append(f"the logs end at different offsets: {sorted(ends)}")
    ids = sorted(logs)
    for one, other in itertools.pairwise(ids):
        shared = logs[one].records.keys() & logs[other].records.keys()
        unequal = [
            offset for offset in shared if logs[one].records[offset] != logs[other].records[offset]
        ]
        violations += _said(f"nodes {one} and {other} differ", map(str, sorted(unequal)))
    return violations


def image_violations(
    ledger: Ledger, topics: Sequence[str], configs: Mapping[str, int]
) -> list[str]:
    """Whether an image holds every acknowledged topic and no stale configuration.

    ``configs`` is the value found for each configuration writer's topic. Values of one writer
    ascend, so nothing older than the newest acknowledged one may be found.
    """
    present = set(topics)
    missing = [
        key
        for key, outcome in ledger.outcomes.items()
        if key.startswith("topic ")
        and outcome is Outcome.ACKNOWLEDGED
        and key.removeprefix("topic ") not in present
    ]
    violations = _said("acknowledged but missing from the image", missing)
    for topic, value in configs.items():
        acknowledged = [
            int(key.rpartition("=")[2])
            for key, outcome in ledger.outcomes.items()
            if outcome is Outcome.ACKNOWLEDGED and key.startswith(f"{topic}: ")
        ]
        if value < max(acknowledged, default=0):
            violations.append(
                f"{topic} is {value} in the image, although {max(acknowledged)} was acknowledged"
            )
    return violations


def _said(what: str, items: Iterable[str]) -> list[str]:
    found = list(items)
    if not found:
        return []
    shown = ", ".join(found[:SHOWN_MAX])
    return [f"{len(found)} {what}: {shown}"]
