"""What ACLs let a client do: commands, reads, the log, and watches that outlive a permission."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast, get_args

import pytest

from quorate.client import BROKER, TOPIC, Client, RefusedError
from quorate.services import access as access_module
from quorate.services.access import NAME_SHOWN_MAX, Access, AccessPolicy, host_of
from quorate.services.roles import Role
from quorum.errors import CommandError, ErrorCode
from quorum.transport.node_names import NodeNames
from quorum.v1 import commands_pb2, metadata_pb2
from statemachine.codec import encode_record
from statemachine.command_access import NEEDS
from statemachine.commands import Command, CreateTopic, DeleteTopic, InitProducerId, SingleCommand
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
    TopicRecord,
)
from statemachine.sections.acl_index import (
    CLUSTER_NAME,
    EMPTY_INDEX,
    AclOperation,
    Action,
    PatternType,
    ResourceKind,
)
from tests.support.served_node import cluster, serving

ME = "User:ANONYMOUS"
NAMES = NodeNames("node-{id}.test")
GROUP = commands_pb2.CONFIG_RESOURCE_TYPE_GROUP
_ids = iter(range(1, 10_000))


def acl(
    name: str,
    operation: AclOperation,
    *,
    kind: ResourceKind = ResourceKind.TOPIC,
    denies: bool = False,
    prefixed: bool = False,
) -> AccessControlEntryRecord:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    numbers = int(kind), name, int(pattern)
    who = next(_ids).to_bytes(16, "big"), *numbers, ME, "*"
    return AccessControlEntryRecord(*who, int(operation), 2 if denies else 3)


def bound(**options: Any) -> AccessPolicy:
    return AccessPolicy(NAMES, frozenset(), **options)


def with_client(
    scenario: Callable[[Any, Client], Awaitable[None]], policy: AccessPolicy | None = None
) -> None:
    """Run ``scenario(node, client)`` against a node that enforces ACLs; the client has no name."""

    async def run() -> None:
        _, (node,) = cluster(1)
        async with serving(node, policy=policy or bound()):
            async with Client([node.address], timeout_seconds=30) as client:
                await scenario(node, client)

    asyncio.run(run())


def grant(node: Any, *acls: AccessControlEntryRecord) -> None:
    node.commit(*(encode_record(each) for each in acls))


def topics(node: Any, *names: str) -> None:
    node.commit(
        *(encode_record(TopicRecord(name, name.encode().ljust(16, b"."))) for name in names)
    )


def test_only_visible_topics_are_listed_and_pages_are_full() -> None:
    async def scenario(node: Any, client: Client) -> None:
        topics(node, *(f"{kind}{number}" for kind in "ab" for number in range(9)), "c0")
        grant(node, acl("b", AclOperation.DESCRIBE, prefixed=True), acl("a4", AclOperation.READ))
        grant(node, acl("b3", AclOperation.DESCRIBE, denies=True))
        seen, after = [], ""
        while True:
            page = await client.list_topics(after_name=after, limit=3)
            seen += [each.name for each in page.topics]
            if not page.has_more:
                break
            assert len(page.topics) == 3
            after = seen[-1]
        assert seen == ["a4", *(f"b{number}" for number in range(9) if number != 3)]

    with_client(scenario)


def test_a_listing_costs_nothing_for_topics_that_may_not_be_seen() -> None:
    """Otherwise a caller without rights could stop a node's loop with a listing of a million."""
    policy = bound()

    async def scenario(node: Any, client: Client) -> None:
        topics(node, *(f"hidden{number}" for number in range(500)), "seen")
        grant(node, acl("seen", AclOperation.DESCRIBE))
        page = await client.list_topics()
        assert [each.name for each in page.topics] == ["seen"]
        assert {action.name for _, _, action in policy._decisions} <= {"seen", CLUSTER_NAME}

    with_client(scenario, policy)


def test_a_topic_that_may_not_be_seen_is_refused_whether_or_not_it_exists() -> None:
    async def scenario(node: Any, client: Client) -> None:
        topics(node, "open", "shut")
        grant(node, acl("open", AclOperation.DESCRIBE))
        found = await client.describe_topics(
            ["open", "shut", "none"], topic_ids=[b"shut............", b"none............"]
        )
        codes = [(each.name, int(each.error_code)) for each in found.topics]
        denied = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        unknown = int(ErrorCode.UNKNOWN_TOPIC_ID)
        assert codes == [
            ("open", 0),
            ("shut", denied),
            ("none", denied),
            ("", denied),
            ("", unknown),
        ]
        assert all(not each.topic_id for each in found.topics[1:3])

    with_client(scenario)


def test_configurations_need_describe_configs_of_their_resource() -> None:
    async def scenario(node: Any, client: Client) -> None:
        topics(node, "t", "u")
        node.commit(encode_record(ConfigRecord(2, "t", "retention.ms", "7")))
        grant(node, acl("t", AclOperation.ALTER_CONFIGS), acl("u", AclOperation.ALL, denies=True))
        found = await client.describe_configs(
            [(TOPIC, "t"), (TOPIC, "u"), (BROKER, ""), (GROUP, "g")]
        )
        assert [int(each.error_code) for each in found.resources] == [0, 29, 31, 30]
        assert [len(each.entries) for each in found.resources] == [1, 0, 0, 0]

    with_client(scenario)


REFUSED: dict[str, tuple[Callable[[Client], Awaitable[Any]], str]] = {
    "FetchLog": (
        lambda client: client.fetch_log(metadata_pb2.FetchLogRequest()),
        "READ TOPIC __cluster_metadata",
    ),
    "ListOffsets": (lambda client: client.list_offsets(-1), "DESCRIBE TOPIC __cluster_metadata"),
    "OffsetForLeaderEpoch": (
        lambda client: client.offset_for_leader_epoch(1),
        "DESCRIBE TOPIC __cluster_metadata",
    ),
    "DescribeQuorum": (
        lambda client: client.describe_quorum(from_leader=False),
        "DESCRIBE CLUSTER kafka-cluster",
    ),
    "DescribeImage": (lambda client: client.describe_image(), "DESCRIBE CLUSTER kafka-cluster"),
    "DescribeAcls": (lambda client: client.describe_acls(), "DESCRIBE CLUSTER kafka-cluster"),
    "DeleteRecords": (lambda client: client.delete_records("t", 0, 1), "DELETE TOPIC t"),
}


@pytest.mark.parametrize("method", REFUSED)
def test_a_method_needs_its_acl(method: str) -> None:
    call, words = REFUSED[method]
    kind = ResourceKind.CLUSTER if "CLUSTER" in words else ResourceKind.TOPIC
    operation = AclOperation[words.split()[0]]

    async def scenario(node: Any, client: Client) -> None:
        with pytest.raises(RefusedError, match=f"{ME} may not: {words}$"):
            await call(client)
        grant(node, acl(words.split()[-1], operation, kind=kind))
        if method == "DeleteRecords":
            with pytest.raises(RefusedError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await call(client)
            return
        await call(client)

    with_client(scenario)


def test_a_watch_ends_when_its_permission_goes() -> None:
    """What was sent before stays sent; the change that takes the permission is not."""

    async def scenario(node: Any, client: Client) -> None:
        with pytest.raises(RefusedError, match="READ TOPIC __cluster_metadata"):
            async for _ in client.watch():
                pass
        permission = acl("__cluster", AclOperation.READ, prefixed=True)
        grant(node, permission)
        watch = aiter(client.watch())
        state = await anext(watch)
        assert state.offset == node.image.provenance.end_offset
        grant(node, acl("t", AclOperation.READ))
        await anext(watch)
        node.commit(encode_record(RemoveAccessControlEntryRecord(permission.id)))
        with pytest.raises(RefusedError, match="TOPIC_AUTHORIZATION_FAILED"):
            await exhausted(watch)

    with_client(scenario)


async def exhausted(watch: Any) -> None:
    async for _ in watch:
        pass


def image(*acls: AccessControlEntryRecord) -> MetadataImage:
    delta = ImageDelta(EMPTY_IMAGE)
    for record in (FeatureLevelRecord("metadata.version", 33), *acls):
        delta.replay(record)
    return delta.finish()


def checked(state: MetadataImage | ImageDelta, command: Command, **options: Any) -> ErrorCode:
    roles = frozenset({options.pop("role", Role.CLIENT)})
    access = Access(bound(**options), ME, "ipv4:10.0.0.1:7", roles)
    try:
        access.check_command(state, command)
    except CommandError as error:
        return error.code
    return ErrorCode.NONE


def test_every_command_says_what_it_needs() -> None:
    assert set(NEEDS) == set(get_args(SingleCommand))


def test_one_of_several_permissions_is_enough() -> None:
    anywhere = acl(CLUSTER_NAME, AclOperation.CREATE, kind=ResourceKind.CLUSTER)
    there = acl("t", AclOperation.CREATE)
    for state, code in ((image(anywhere), 0), (image(there), 0), (image(), 29)):
        assert checked(state, CreateTopic("t")) == code


def test_a_topic_is_deleted_by_the_name_that_its_id_has_on_the_evaluated_state() -> None:
    """Another name beside the id does not help, and the id of an uncommitted topic counts."""
    delta = ImageDelta(image(acl("mine", AclOperation.DELETE)))
    delta.replay(TopicRecord("theirs", b"i" * 16))
    assert checked(delta, DeleteTopic("mine", b"i" * 16)) == 29
    assert checked(delta, DeleteTopic(topic_id=b"i" * 16)) == 29
    assert checked(delta, DeleteTopic("mine")) == 0


def test_a_command_is_checked_behind_the_acls_before_it() -> None:
    base = image(acl("t", AclOperation.CREATE))
    delta = ImageDelta(base)
    assert checked(delta, CreateTopic("t")) == 0
    delta.replay(acl("t", AclOperation.CREATE, denies=True))
    assert checked(delta, CreateTopic("t")) == 29
    assert checked(base, CreateTopic("t")) == 0


def test_who_may_change_something_may_have_a_producer_id() -> None:
    cluster_kind = ResourceKind.CLUSTER
    for acls, code in (
        ((), 31),
        ((acl("t", AclOperation.READ),), 31),
        ((acl("t", AclOperation.ALTER, denies=True),), 31),
        ((acl("t", AclOperation.ALTER),), 0),
        ((acl(CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE, kind=cluster_kind),), 0),
        (
            (
                acl("t", AclOperation.ALTER),
                acl(CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE, kind=cluster_kind, denies=True),
            ),
            31,
        ),
    ):
        assert checked(image(*acls), InitProducerId()) == code


def test_operators_may_do_everything() -> None:
    state = image(acl("t", AclOperation.ALL, denies=True))
    assert checked(state, CreateTopic("t"), role=Role.OPERATOR) == 0


def test_a_denial_is_counted_and_written_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    causes: list[str] = []
    with caplog.at_level(logging.WARNING, "quorate.audit"):
        assert checked(image(), CreateTopic("t"), on_denied=causes.append) == 29
    assert causes == ["acl"]
    assert caplog.messages == [
        "event=access_denied principal=User:ANONYMOUS roles=client address=ipv4:10.0.0.1:7 "
        "cause=acl what=CREATE TOPIC t"
    ]


@pytest.mark.parametrize(
    ("address", "host"),
    [("ipv4:10.0.0.1:77", "10.0.0.1"), ("ipv6:[::1]:77", "::1"), ("unix:", "")],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host
    assert Access(bound(), ME, "ipv6:%5B::1%5D:7", frozenset())._host == "::1"


class DenyingPolicy(AccessPolicy):
    """Nobody has a role, as for a node's certificate at the services of clients."""

    def access_of(self, context: Any, _image: MetadataImage) -> Access:
        return Access(self, ME, context.peer(), frozenset())


def test_a_client_that_no_node_lets_write_is_refused_at_once() -> None:
    """It does not search until its deadline; all commands that wait get the reason."""

    async def run() -> None:
        _, nodes = cluster(3)
        policy = DenyingPolicy(NAMES, frozenset())
        async with serving(*nodes, policy=policy):
            addresses = [node.address for node in nodes]
            async with Client(addresses, timeout_seconds=600) as client:
                for _ in range(2):
                    ended = await asyncio.gather(
                        *(client.set_config(TOPIC, "t", "retention.ms", "1") for _ in range(3)),
                        return_exceptions=True,
                    )
                    assert {str(each) for each in ended} == {
                        "CLUSTER_AUTHORIZATION_FAILED: User:ANONYMOUS may not: "
                        "/quorum.v1.MetadataService/WriteStream"
                    }
                    assert all(isinstance(each, RefusedError) for each in ended)

    asyncio.run(run())


def test_one_node_that_denies_does_not_end_a_search() -> None:
    async def run() -> None:
        _, nodes = cluster(2, leader=2)
        async with serving(*nodes[:1], policy=DenyingPolicy(NAMES, frozenset())):
            async with serving(*nodes[1:]):
                async with Client([node.address for node in nodes], timeout_seconds=30) as client:
                    applied = await client.set_config(TOPIC, "t", "retention.ms", "1")
                    assert applied.offset >= 0

    asyncio.run(run())


def test_a_name_that_no_resource_has_is_not_remembered() -> None:
    """A caller chooses names as long as a message; ten thousand of them must not be kept."""
    policy = bound()
    for length in (NAME_SHOWN_MAX, NAME_SHOWN_MAX + 1):
        action = Action(int(ResourceKind.TOPIC), "x" * length, int(AclOperation.DESCRIBE))
        assert not policy.allows(EMPTY_INDEX, ME, "10.0.0.1", action)
    assert [len(action.name) for _, _, action in policy._decisions] == [NAME_SHOWN_MAX]


class _Caller:
    """The context of a call with a certificate."""

    def __init__(self, *names: str, transport: bytes = b"ssl") -> None:
        self._auth = {
            "transport_security_type": [transport],
            "x509_subject_alternative_name": [name.encode() for name in names],
            "x509_common_name": [b"same for all"],
            "x509_pem_cert": [b"PEM"],
        }

    def auth_context(self) -> dict[str, list[bytes]]:
        return self._auth

    def peer(self) -> str:
        return "ipv4:10.0.0.1:5000"


def test_remembered_roles_are_those_of_the_same_certificate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every name counts, and nothing of a caller without a verified certificate does."""
    monkeypatch.setattr(access_module, "CALLERS_KEPT_MAX", 3)
    policy = AccessPolicy(NodeNames("node-{id}.test"), frozenset({"User:op.test"}))
    callers = {
        Role.CLIENT: _Caller("app.test"),
        Role.VOTER: _Caller("app.test", "node-1.test"),
        Role.OPERATOR: _Caller("op.test"),
    }
    for _ in range(3):
        for role, caller in callers.items():
            assert policy.access_of(cast("Any", caller), EMPTY_IMAGE).roles == {role}
    for number in range(10):
        stranger = _Caller("op.test", f"{number}.test", transport=b"insecure")
        assert Role.OPERATOR not in policy.access_of(cast("Any", stranger), EMPTY_IMAGE).roles
        assert len(policy._callers) <= 3
