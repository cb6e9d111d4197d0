"""The kinds of entities that an image has, by name."""

from __future__ import annotations

KINDS: tuple[str, ...] = (
    "feature", "zk-migration", "controller", "broker", "topic", "partition", "config", "quota",
    "producer-ids", "acl", "scram", "token", "broker-epoch", "producer", "transactional-id",
    "position", "import", "answered-requests",
)  # fmt: skip
"""Nearly in the order of a checkpoint. ``entities`` has the record type of each."""
