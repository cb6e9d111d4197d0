from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class LeaderHint(_message.Message):
    __slots__ = ("leader_id", "leader_epoch", "address", "sasl_address")
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SASL_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    leader_id: int
    leader_epoch: int
    address: str
    sasl_address: str
    def __init__(self, leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., address: _Optional[str] = ..., sasl_address: _Optional[str] = ...) -> None: ...

class OffsetBounds(_message.Message):
    __slots__ = ("earliest_offset", "high_watermark", "snapshot_end_offset", "snapshot_epoch", "resume_offset", "resume_epoch")
    EARLIEST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    RESUME_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RESUME_EPOCH_FIELD_NUMBER: _ClassVar[int]
    earliest_offset: int
    high_watermark: int
    snapshot_end_offset: int
    snapshot_epoch: int
    resume_offset: int
    resume_epoch: int
    def __init__(self, earliest_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., snapshot_end_offset: _Optional[int] = ..., snapshot_epoch: _Optional[int] = ..., resume_offset: _Optional[int] = ..., resume_epoch: _Optional[int] = ...) -> None: ...

class KnownProducer(_message.Message):
    __slots__ = ("producer_id", "producer_epoch", "was_assigned", "last_sequence", "oldest_open", "transactional_id", "current_producer_id", "current_producer_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    WAS_ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OLDEST_OPEN_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    was_assigned: bool
    last_sequence: int
    oldest_open: int
    transactional_id: str
    current_producer_id: int
    current_producer_epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., was_assigned: bool = ..., last_sequence: _Optional[int] = ..., oldest_open: _Optional[int] = ..., transactional_id: _Optional[str] = ..., current_producer_id: _Optional[int] = ..., current_producer_epoch: _Optional[int] = ...) -> None: ...

class DivergenceHint(_message.Message):
    __slots__ = ("epoch", "offset")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    offset: int
    def __init__(self, epoch: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...
