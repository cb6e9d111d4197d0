"""Reading a segment or checkpoint file batch by batch, for people and programs.

Only one batch is in memory at a time. The first thing that is wrong ends the reading with an
error naming file, position and cause; everything before it has been given out by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from quorum.batch import (
    PEEK_BYTES,
    BatchHeader,
    Record,
    check_crc,
    iterate_records,
    peek_size,
    read_header,
)
from quorum.control import decode_control
from quorum.control_origin import origin_headers
from quorum.errors import CorruptBatchError, RecordCodecError, UnknownRecordError
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import parse_segment_name
from quorum.log.segment_tail import join_problem
from statemachine.codec import batch_headers, decode_record
from statemachine.payload import bytes_text, control_payload, record_payload, written_version

_CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """One batch of a file. ``header.position`` is its place in the file."""

    header: BatchHeader
    data: bytes
    path: Path

    def records(self) -> list[Record]:
        """The records inside.

        Raises:
            CorruptBatchError: They are malformed.
        """
        return iterate_records(self.data, self.header._replace(position=0), path=self.path)


def read_batches(path: Path) -> Iterator[FoundBatch]:
    """Every batch of the file in order, each with its checksum proven.

    What no checksum covers is proven by what surrounds it: a batch's base offset by the batch
    before it, or the segment's name, and its epoch by never falling. An epoch that has rotted
    upwards is therefore found one batch late, and one of the last batch not by its file alone
    (``quorum.log.epoch_evidence``, and the log digest where there is one).

    Raises:
        CorruptBatchError: At the first batch that is damaged, cut off or out of order.
        StorageError: The file cannot be read.
    """
    with closing(OsFileSystem().open(path)) as file:
        position, end, epoch = 0, file.size(), 0
        next_offset = parse_segment_name(path.name)
        while position < end:
            size = peek_size(file.read_at(position, PEEK_BYTES), path=path, base_position=position)
            data = file.read_at(position, size if size is not None else end - position)
            header = read_header(data, path=path, base_position=position)
            check_crc(data, header, path=path, base_position=position)
            problem = join_problem(
                header, header.base_offset if next_offset is None else next_offset, epoch
            )
            if problem:
                raise CorruptBatchError(problem, path=path, position=position)
            yield FoundBatch(header._replace(position=position), data, path)
            next_offset, epoch = header.end_offset, header.epoch
            position += header.size


def batch_line(header: BatchHeader) -> dict[str, object]:
    """The facts of a batch under the names Kafka's dump tool uses."""
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.end_offset - 1,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "position": header.position,
        "createTime": header.max_timestamp,
        "size": header.size,
        "compresscodec": _CODEC_NAMES[header.codec],
        "crc": header.crc,
    }


def record_line(
    batch: FoundBatch, record: Record, *, show_secrets: bool = False
) -> dict[str, object]:
    """The facts and the meaning of one record.

    What cannot be decoded is shown as such with the reason: a dump must not stop at it.
    """
    line: dict[str, object] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
    }
    is_control = batch.header.is_control
    try:
        headers = batch_headers(record.headers, None if is_control else record.value)
        control = None
        if is_control:
            control = decode_control(record, path=batch.path, position=batch.header.position)
            headers = (*headers, *origin_headers(control))
        if headers:
            line["headers"] = {name: _header_text(value) for name, value in headers}
        if control is not None:
            line["payload"] = control_payload(control)
        elif record.value is None:
            line["error"] = "no value"
        else:
            decoded = decode_record(record.value)
            version = written_version(record.value)
            line["payload"] = record_payload(decoded, version, show_secrets=show_secrets)
    except (CorruptBatchError, RecordCodecError, UnknownRecordError) as error:
        line["error"] = str(error)
    return line


def _header_text(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return bytes_text(value)
    return text if text.isprintable() else bytes_text(value)
