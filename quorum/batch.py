"""Record batch v2, the framing of every log segment and checkpoint: the public names.

``batch_header`` finds and verifies batches, ``batch_decode`` reads the records inside,
``batch_encode`` writes them.
"""

from __future__ import annotations

from quorum.batch_decode import (
    Record,
    first_headers,
    iterate_records,
    record_values,
    values_and_headers,
    values_at_once,
)
from quorum.batch_encode import encode_batch, encode_with_header, with_position
from quorum.batch_header import (
    BATCH_BYTES_MAX,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    PEEK_BYTES,
    BatchHeader,
    VerifiedBatches,
    check_crc,
    peek_size,
    read_header,
    scan_batches,
)

__all__ = [
    "BATCH_BYTES_MAX",
    "CODEC_MASK",
    "CONTROL_BIT",
    "HEADER_BYTES",
    "PEEK_BYTES",
    "BatchHeader",
    "Record",
    "VerifiedBatches",
    "check_crc",
    "encode_batch",
    "encode_with_header",
    "first_headers",
    "iterate_records",
    "peek_size",
    "read_header",
    "record_values",
    "scan_batches",
    "values_and_headers",
    "values_at_once",
    "with_position",
]
