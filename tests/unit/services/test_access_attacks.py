"""Ways around the ACLs of a command that a client with some rights might try."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.services.access import Access, AccessPolicy
from quorate.services.roles import Role
from quorum.errors import CommandError, ErrorCode
from quorum.transport.node_names import NodeNames
from statemachine.codec import encode_kafka, encode_record
from statemachine.commands import BrokerHeartbeat, Command, DeleteTopic, ImportBatch
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.import_state import SourcePosition
from statemachine.records import (
    AccessControlEntryRecord,
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from statemachine.sections.acl_index import CLUSTER_NAME, AclOperation, ResourceKind

ME = "User:me"
THEIRS = TopicRecord("theirs", b"i" * 16)
NO_RIGHT = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def acl(kind: ResourceKind, name: str, operation: AclOperation) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(b"a" * 16, int(kind), name, 3, ME, "*", int(operation), 3)


def image_of(*state: MetadataRecord) -> MetadataImage:
    delta = ImageDelta(EMPTY_IMAGE)
    for record in state:
        delta.replay(record)
    return delta.finish()


def access() -> Access:
    policy = AccessPolicy(NodeNames("node-{id}.test"), frozenset({"User:admin"}))
    return Access(policy, ME, "ipv4:10.0.0.1:7", frozenset({Role.CLIENT}))


def refusal(command: Command, *state: MetadataRecord) -> CommandError | None:
    try:
        access().check_command(image_of(*state), command)
    except CommandError as error:
        return error
    return None


@pytest.mark.parametrize("is_allowed", [False, True])
def test_nobody_keeps_a_broker_alive_by_heartbeats_that_are_refused(is_allowed: bool) -> None:
    right = acl(ResourceKind.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)
    state, heartbeat = [right] if is_allowed else [], BrokerHeartbeat(1, 1, 0)
    assert access().allows_heartbeat(image_of(*state), heartbeat) is is_allowed
    assert (refusal(heartbeat, *state) is None) is is_allowed


@pytest.mark.parametrize("may_see", [False, True])
def test_the_id_of_a_topic_does_not_tell_its_name(
    caplog: pytest.LogCaptureFixture, may_see: bool
) -> None:
    """Unless the caller may see the topic. The audit log has the name."""
    rights = [acl(ResourceKind.TOPIC, "theirs", AclOperation.DESCRIBE)] if may_see else []
    refused = refusal(DeleteTopic(topic_id=b"i" * 16), THEIRS, *rights)
    assert refused is not None
    assert refused.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert ("theirs" in str(refused)) is may_see
    assert "what=DELETE TOPIC theirs" in caplog.messages[-1]


@pytest.mark.parametrize("encode", [encode_record, encode_kafka])
@pytest.mark.parametrize(
    ("record", "code"),
    [
        (UserScramCredentialRecord("admin", 2, b"s" * 16, b"k" * 64, b"k" * 64, 4096), NO_RIGHT),
        (RemoveUserScramCredentialRecord("admin", 2), NO_RIGHT),
        (UserScramCredentialRecord("bob", 2, b"s" * 16, b"k" * 64, b"k" * 64, 4096), None),
    ],
)
def test_nobody_imports_the_password_of_an_operator(
    encode: Callable[[MetadataRecord], bytes], record: MetadataRecord, code: ErrorCode | None
) -> None:
    """An import copies records as they are, credentials too; ALTER on the cluster permits it."""
    may_import = acl(ResourceKind.CLUSTER, CLUSTER_NAME, AclOperation.ALTER)
    begin, end = SourcePosition(True, 0), SourcePosition(True, 3)
    values = (encode(THEIRS), encode(record), b"\x93nonsense")
    refused = refusal(ImportBatch("source", begin, end, values), may_import)
    assert (refused and refused.code) == code
