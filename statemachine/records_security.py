"""Records that matter to Kafka's security features: tokens, SCRAM credentials and ACLs.

We interpret none of them; they are carried into the image and checkpoints without loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorum.types import ZERO_UUID
from statemachine.records_schema import Int8, Int32, Int64, MetadataRecord, UuidValue


@dataclass(slots=True)
class DelegationTokenRecord(MetadataRecord):
    """Creates or renews a delegation token. Times in milliseconds since 1970."""

    API_KEY: ClassVar[int] = 10
    IDENTITY = ("token_id",)
    HISTORY = ("entity", "token_id")
    owner: str = ""
    requester: str = ""
    renewers: tuple[str, ...] = ()
    issue_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    expiration_timestamp: Int64 = 0
    token_id: str = ""


@dataclass(slots=True)
class UserScramCredentialRecord(MetadataRecord):
    """Sets a SCRAM credential. ``mechanism``: 1 SHA-256, 2 SHA-512."""

    API_KEY: ClassVar[int] = 11
    IDENTITY = ("name", "mechanism")
    HISTORY = ("entity", "name")
    name: str = ""
    mechanism: Int8 = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: Int32 = 0


@dataclass(slots=True)
class AccessControlEntryRecord(MetadataRecord):
    """Adds an ACL under a random id."""

    API_KEY: ClassVar[int] = 18
    IDENTITY = ("id",)
    HISTORY = ("entity", "id")
    id: UuidValue = ZERO_UUID
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Int8 = 0
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@dataclass(slots=True)
class RemoveAccessControlEntryRecord(MetadataRecord):
    """Removes the ACL with that id, which must exist."""

    API_KEY: ClassVar[int] = 19
    HISTORY = ("entity", "id")
    id: UuidValue = ZERO_UUID


@dataclass(slots=True)
class RemoveUserScramCredentialRecord(MetadataRecord):
    """Removes one SCRAM credential."""

    API_KEY: ClassVar[int] = 22
    HISTORY = ("entity", "name")
    name: str = ""
    mechanism: Int8 = 0


@dataclass(slots=True)
class RemoveDelegationTokenRecord(MetadataRecord):
    """Removes a delegation token."""

    API_KEY: ClassVar[int] = 26
    HISTORY = ("entity", "token_id")
    token_id: str = ""
