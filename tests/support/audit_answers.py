"""The log that audit questions are asked about, and the answers by stepping through its images."""

from __future__ import annotations

from pathlib import Path

from quorum.types import uuid_to_text
from statemachine.image import MetadataImage
from statemachine.records import (
    BrokerFencedEvent,
    BrokerUnfencedEvent,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.audit_log import AuditLog

TOPIC_ID = bytes(15) + b"\x09"


def trimmed_log(home: Path) -> AuditLog:
    """Random commands over several segments, behind a checkpoint that replaces the beginning."""
    log = AuditLog(home, segment_bytes=4000)
    log.elect(1)
    world = log.world(21, 60)
    snapshot_id = log.checkpoint()
    log.elect(2)
    log.more(world, 60)
    log.command(RegisterBrokerRecord(0, broker_epoch=900, fenced=False))
    log.command(RegisterBrokerRecord(1, broker_epoch=901, fenced=False))
    log.command(
        TopicRecord("led-by-one", TOPIC_ID),
        PartitionRecord(0, TOPIC_ID, (1, 0), (1, 0), leader=1, leader_epoch=0, partition_epoch=0),
    )
    log.command(BrokerFencedEvent(1, 901), principal="User:controller", reason="no heartbeat")
    log.command(BrokerUnfencedEvent(1, 901), principal="User:controller")
    log.commit()
    log.log.advance_start(snapshot_id)
    return log


def turns_by_replay(log: AuditLog, start: int) -> list[tuple[str, int, int, int, int, int | None]]:
    """Topic id, partition, leader, leader epoch, from and until, by stepping through the images."""
    open_turns: dict[tuple[str, int], tuple[int, int, int]] = {}
    turns: list[tuple[str, int, int, int, int, int | None]] = []
    for end in sorted(offset for offset in log.images if offset >= start):
        now = leaders(log.images[end])
        for key in [*open_turns]:
            if now.get(key) != open_turns[key][:2]:
                leader, epoch, begun = open_turns.pop(key)
                turns.append((*key, leader, epoch, begun, end))
        for key, (leader, epoch) in now.items():
            open_turns.setdefault(key, (leader, epoch, end))
    return turns + [
        (*key, leader, epoch, begun, None) for key, (leader, epoch, begun) in open_turns.items()
    ]


def leaders(image: MetadataImage) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (uuid_to_text(topic_id), index): (state.leader, state.leader_epoch)
        for topic_id, partitions in image.topics.partitions.items()
        for index, state in partitions.items()
    }
