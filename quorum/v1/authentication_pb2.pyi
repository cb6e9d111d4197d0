from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class AuthenticateRequest(_message.Message):
    __slots__ = ("mechanism", "data")
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    mechanism: str
    data: bytes
    def __init__(self, mechanism: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class AuthenticateResponse(_message.Message):
    __slots__ = ("data", "token", "lifetime_ms")
    DATA_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_MS_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    token: str
    lifetime_ms: int
    def __init__(self, data: _Optional[bytes] = ..., token: _Optional[str] = ..., lifetime_ms: _Optional[int] = ...) -> None: ...
