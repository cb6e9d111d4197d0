"""What a file in a data directory is, if it is no log segment and no checkpoint."""

from __future__ import annotations

from pathlib import Path

from quorum.log.layout import (
    DIGEST_SUFFIX,
    EPOCH_FILE_NAME,
    INDEX_SUFFIX,
    LOG_START_NAME,
    META_PROPERTIES_NAME,
    PARTITION_METADATA_NAME,
    QUARANTINED_NAME,
    QUORUM_STATE_NAME,
    WATERMARK_NAMES,
    parse_segment_name,
)

_BESIDE_A_SEGMENT = {
    INDEX_SUFFIX: "a segment's index by offset",
    ".timeindex": "a segment's index by time, of Kafka's",
    ".txnindex": "a segment's index of aborted transactions, of Kafka's",
    ".snapshot": "a snapshot of producer states, of Kafka's",
    DIGEST_SUFFIX: "the log digest at a segment's base",
}
_BY_NAME = {
    QUORUM_STATE_NAME: "the epoch and the vote of this replica, as JSON",
    EPOCH_FILE_NAME: "where each epoch of the log begins, as text",
    PARTITION_METADATA_NAME: "the id of the log's topic, as text",
    META_PROPERTIES_NAME: "the identity of a data directory, as text",
    LOG_START_NAME: "where the log begins, as JSON",
    **dict.fromkeys(WATERMARK_NAMES, "how far the log is committed and durable"),
    QUARANTINED_NAME: "from where on a majority holds another history",
}


def other_kind(path: Path) -> str:
    """What the file is by its name; empty for what may hold record batches."""
    for suffix, text in _BESIDE_A_SEGMENT.items():
        if parse_segment_name(path.name, suffix) is not None:
            return text
    return _BY_NAME.get(path.name, "")
