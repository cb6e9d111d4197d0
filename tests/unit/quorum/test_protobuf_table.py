"""Descriptions that do not fit are refused at import; the rules of presence and length."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from quorum.errors import PeerProtocolError
from quorum.protobuf_table import EMPTY, CodecTable, Converter
from quorum.types import Endpoint, LeaderAndEpoch, OffsetAndEpoch, ReplicaKey
from quorum.v1 import commands_pb2, common_pb2, raft_pb2
from quorum.values import value


@value
class Topic:
    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: tuple[int, ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()
    dry_run: bool = False


@value
class Question:
    cluster_id: str
    replica: ReplicaKey
    epoch: int


@value
class Begin:
    request_id: int
    leader_id: int
    epoch: int
    error_code: int
    leader_endpoints: tuple[Endpoint, ...] = ()


class Place(NamedTuple):
    offset: int
    epoch: int


def table(**rules: object) -> CodecTable:
    return CodecTable(PeerProtocolError, **rules)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "rules"),
    [
        (LeaderAndEpoch, {}),
        (LeaderAndEpoch, {"rename": {"leader_epoch": "epoch"}}),
        (LeaderAndEpoch, {"rename": {"epoch": "leader_epoch"}, "absent": {"leader": 1}}),
        (OffsetAndEpoch, {}),
    ],
    ids=["other name", "renamed the other way", "rule for no field", "other fields"],
)
def test_fields_without_a_counterpart_are_refused(kind: type, rules: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="without a counterpart"):
        table().describe(kind, common_pb2.LeaderAndEpoch, **rules)  # type: ignore[arg-type]


def test_an_absent_field_and_its_default_are_equal_both_ways() -> None:
    codec = table().describe(
        Topic, commands_pb2.CreateTopic,
        convert={"assignments": Converter(lambda _: (), lambda found: (len(found),))},
    )  # fmt: skip
    bare = commands_pb2.CreateTopic(name="t")
    assert codec.from_pb(bare) == Topic("t", assignments=(0,))
    assert codec.to_pb(Topic("t")) == bare
    # A value that counts as false is there all the same.
    zero = commands_pb2.CreateTopic(name="t", partition_count=0)
    assert codec.from_pb(zero).partition_count == 0
    assert codec.to_pb(Topic("t", 0)) == zero


def test_pairs_are_messages_of_two_fields() -> None:
    codec = table().describe(
        Topic, commands_pb2.CreateTopic, convert={"assignments": Converter(lambda _: ())}
    )
    pairs = (("a", None), ("b", ""), ("c", "x"))
    sent = codec.to_pb(Topic("t", configs=pairs))
    assert [each.HasField("value") for each in sent.configs] == [False, True, True]
    assert codec.from_pb(sent).configs == pairs


def test_named_tuples_are_coded_too() -> None:
    codec = table().describe(Place, common_pb2.OffsetAndEpoch)
    assert codec.from_pb(codec.to_pb(Place(7, 2))) == Place(7, 2)


def test_ids_have_their_length_and_lists_their_bound() -> None:
    group = {"leader_id": "leader_id", "epoch": "leader_epoch"}
    peers = table(beside=["request_id"], groups={"current_leader": group})
    key = peers.describe(ReplicaKey, common_pb2.ReplicaKey)
    assert peers[ReplicaKey] is key
    assert key.to_pb(ReplicaKey(1)).directory_id == b""
    with pytest.raises(PeerProtocolError, match="directory id has 3 bytes, not 16"):
        key.from_pb(common_pb2.ReplicaKey(directory_id=b"abc"))
    peers.describe(Endpoint, common_pb2.Endpoint, sequence_max=2)
    begin = peers.describe(Begin, raft_pb2.EndQuorumEpochResponse)
    response = raft_pb2.EndQuorumEpochResponse(leader_endpoints=[common_pb2.Endpoint()] * 3)
    with pytest.raises(PeerProtocolError, match="EndQuorumEpoch response: current_leader is missi"):
        begin.from_pb(response, 1)
    response.current_leader.SetInParent()
    with pytest.raises(PeerProtocolError, match="3 in leader endpoints, more than 2"):
        begin.from_pb(response, 1)


def test_an_absent_message_may_be_read_as_an_empty_one() -> None:
    """Only where the description allows it: otherwise absence is refused."""
    for absent, expected in (({}, None), ({"replica": EMPTY}, Question("c", ReplicaKey(0), 3))):
        peers = table()
        peers.describe(ReplicaKey, common_pb2.ReplicaKey)
        codec = peers.describe(Question, raft_pb2.ReadPositionRequest, absent=absent)
        received = raft_pb2.ReadPositionRequest(cluster_id="c", epoch=3)
        if expected is not None:
            assert codec.from_pb(received) == expected
            continue
        with pytest.raises(PeerProtocolError, match="ReadPosition: replica is missing"):
            codec.from_pb(received)
