"""FetchPositions and CommitPosition as clients use them, and the ACLs of groups."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import Client, LogPosition, RefusedError
from quorate.services.positions import GROUPS_PER_REQUEST_MAX
from quorum.log_position import LINEAGE_EPOCHS_MAX, EpochEntry
from quorum.types import ZERO_UUID
from quorum.v1 import commands_pb2 as wire
from statemachine.codec import encode_record
from statemachine.commands import (
    CommitPosition,
    CreateTopic,
    IncrementalAlterConfigs,
    ReadEpoch,
    WithPosition,
)
from statemachine.records import CommittedPositionRecord, PositionEpoch
from statemachine.sections.acl_index import AclOperation, ResourceKind
from tests.support.served_node import cluster, serving
from tests.unit.services.test_access import acl, checked, grant, image, with_client

STORED = CommittedPositionRecord(
    "g", 7, 2, (PositionEpoch(1, 0), PositionEpoch(2, 5, b"d" * 16)), b"e" * 16, ZERO_UUID, "m", 99
)


def test_a_position_is_fetched_with_all_it_was_committed_with() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        node.commit(encode_record(STORED))
        async with serving(node), Client([node.address], timeout_seconds=30) as client:
            found = await client.fetch_positions(["g", "none"])
            assert found["none"] is None
            assert found["g"] is not None
            position, metadata, committed_ms = found["g"]
            assert (metadata, committed_ms) == ("m", 99)
            assert position == LogPosition(7, 2)
            assert position.epochs == (EpochEntry(1, 0), EpochEntry(2, 5, b"d" * 16))
            assert (position.log_digest, position.log_incarnation) == (b"e" * 16, ZERO_UUID)
            with pytest.raises(RefusedError, match="MESSAGE_TOO_LARGE"):
                await client.fetch_positions(map(str, range(GROUPS_PER_REQUEST_MAX + 1)))

    asyncio.run(scenario())


def test_a_position_is_sent_alone_or_with_a_command_and_with_its_newest_epochs() -> None:
    async def scenario() -> None:
        log, (node,) = cluster(1)
        epochs = tuple(EpochEntry(number, number) for number in range(LINEAGE_EPOCHS_MAX))
        position = LogPosition(LINEAGE_EPOCHS_MAX, LINEAGE_EPOCHS_MAX - 1, epochs, b"e" * 16)
        async with serving(node), Client([node.address], timeout_seconds=30) as client:
            await client.commit_position("g", position, metadata="m")
            command = wire.Command()
            change = command.incremental_alter_configs
            change.resource_type, change.resource_name = wire.CONFIG_RESOURCE_TYPE_TOPIC, "t"
            await client.commit_position("g", LogPosition(0), command=command)
        alone, both = log.applied
        assert isinstance(alone, CommitPosition)
        assert (alone.offset, alone.leader_epoch, alone.metadata) == (1024, 1023, "m")
        assert alone.epochs == tuple(ReadEpoch(each, each) for each in range(896, 1024))
        assert isinstance(both, WithPosition)
        assert isinstance(both.command, IncrementalAlterConfigs)
        assert both.position == CommitPosition("g", 0)

    asyncio.run(scenario())


def test_positions_of_a_group_need_describe_on_it_and_a_refusal_shows_nothing() -> None:
    async def scenario(node, client) -> None:
        node.commit(encode_record(STORED))
        for group in ("g", "none"):
            with pytest.raises(RefusedError, match="GROUP_AUTHORIZATION_FAILED"):
                await client.fetch_positions([group])
        grant(node, acl("g", AclOperation.READ, kind=ResourceKind.GROUP))
        assert (await client.fetch_positions(["g"]))["g"] is not None
        with pytest.raises(RefusedError, match="GROUP_AUTHORIZATION_FAILED"):
            await client.fetch_positions(["g", "none"])

    with_client(scenario)


def test_a_command_with_a_position_needs_the_rights_of_both() -> None:
    both = WithPosition(CreateTopic("t"), CommitPosition("g", 0))
    topic = acl("t", AclOperation.CREATE)
    group = acl("g", AclOperation.READ, kind=ResourceKind.GROUP)
    for state, code in ((image(), 30), (image(topic), 30), (image(group), 29)):
        assert checked(state, both) == code
    assert checked(image(topic, group), both) == 0
