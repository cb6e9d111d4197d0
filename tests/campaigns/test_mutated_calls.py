"""Mutated calls over every RPC change nothing, and the campaign finds a call that does."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2

from quorum.transport import framing
from quorum.types import ReplicaKey
from tests.campaigns.broken_node import VARIABLE
from tests.campaigns.calls import SETTINGS, CallsCampaign, shares, sweep_of
from tests.campaigns.frames import requests
from tests.campaigns.honest import PRINCIPAL, Batch, unexplained
from tests.campaigns.mutations import Current, numbers
from tests.campaigns.observation import NodeState, Observation, differences
from tests.campaigns.report import Report
from tests.campaigns.sending import GONE, RAISED, wrong_endings
from tests.campaigns.valid_calls import (
    EXCHANGE,
    METHODS,
    ClusterState,
    commands,
    is_authorised,
    valid_calls,
)
from tests.integration.processes import Processes, running

SHORT_CALLS = 900
WHOLE_CALLS = 28_000
CLUSTER_STATE = ClusterState(
    cluster_id="c",
    leader_id=1,
    voters=((1, b"a" * 16), (2, b"b" * 16), (3, b"c" * 16)),
    current=Current(3, 100, (1, 2, 3)),
    topic_id=b"t" * 16,
    broker_epochs=(5, 6, 7),
)
STATE = NodeState(1, 3, 1, ((1, "a", ()),), '{"leaderEpoch":3}', 0, is_ready=True)
SEEN = Observation({1: STATE, 2: STATE}, {1: (9, "d"), 2: (9, "d")})


# ---------------------------------------------------------------- what is sent


def test_every_rpc_has_valid_calls() -> None:
    """A new RPC, kind of command or peer request needs a line."""
    assert valid_calls(CLUSTER_STATE).keys() == METHODS.keys()
    kinds = METHODS["/quorum.v1.MetadataService/Write"].input_type.fields_by_name["command"]
    in_protocol = {each.name for each in kinds.message_type.oneofs_by_name["kind"].fields}
    assert commands(CLUSTER_STATE).keys() == in_protocol
    assert requests(CLUSTER_STATE, ReplicaKey(77)).keys() == framing._RESPONSE_OF.keys()


def test_numbers_are_taken_at_every_bound() -> None:
    fields = METHODS["/quorum.v1.RaftService/Vote"].input_type.fields_by_name
    found = set(numbers(fields["epoch"], CLUSTER_STATE.current))
    top = (1 << 31) - 1
    assert {-(1 << 31), -1, 0, 1, 2, 3, 4, top - 2, top - 1, top} <= found


def test_the_whole_run_holds_the_whole_sweep() -> None:
    sizes = {each: len(sweep_of(each, CLUSTER_STATE)) for each in METHODS}
    wanted = shares((*METHODS, EXCHANGE), WHOLE_CALLS, sizes)
    assert sum(wanted.values()) >= WHOLE_CALLS
    assert all(wanted[each] >= size for each, size in sizes.items())


def test_what_an_operator_may_ask_for_is_not_sent() -> None:
    method = "/quorum.v1.AdminService/RemoveVoter"
    kind = METHODS[method].input_type._concrete_class
    for disk, is_right in ((b"a" * 16, True), (b"", True), (b"b" * 16, False)):
        data = kind(voter_id=1, directory_id=disk).SerializeToString()
        assert is_authorised(method, data, CLUSTER_STATE) is is_right


# ---------------------------------------------------------------- the comparisons can fail


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epoch": 4}, "epoch was 3, is 4"),
        ({"leader_id": 2}, "leader id was 1, is 2"),
        ({"voters": ()}, "voters was"),
        ({"election_state": '{"leaderEpoch":4}'}, "election state was"),
        ({"process_id": 0}, "process id was 1, is 0"),
        ({"tracebacks": 1}, "tracebacks was 0, is 1"),
        ({"is_ready": False}, "is ready was True, is False"),
    ],
)
def test_each_difference_is_named(change: Mapping[str, Any], words: str) -> None:
    assert differences(SEEN, SEEN, same_image=True) == []
    now = replace(SEEN, nodes={1: STATE, 2: replace(STATE, **change)})
    (found,) = differences(SEEN, now, same_image=True)
    assert found.startswith("node 2: ")
    assert words in found


def test_images_are_compared_with_one_another_and_with_the_old_one() -> None:
    apart = replace(SEEN, digests={1: (9, "d"), 2: (9, "e")})
    assert "images differ" in differences(SEEN, apart, same_image=False)[0]
    both = replace(SEEN, digests={1: (9, "e"), 2: (9, "e")})
    assert differences(SEEN, both, same_image=False) == []
    assert "the image was" in differences(SEEN, both, same_image=True)[0]


def test_every_batch_in_the_log_belongs_to_a_known_call() -> None:
    log = {5: Batch(frozenset({PRINCIPAL}), b"x1001y"), 6: Batch(frozenset(), b"own")}
    assert unexplained(log, {5: "1001"}, frozenset(), unknown=0) == []
    assert "have no acknowledgement" in unexplained(log, {}, frozenset(), unknown=0)[0]
    assert unexplained(log, {}, frozenset({5}), unknown=0) == []
    assert unexplained(log, {}, frozenset(), unknown=1) == []
    for lost in ({5: "1002"}, {7: "1001"}):
        assert "is not in the log" in unexplained(log, lost, frozenset({5}), unknown=0)[0]


def test_no_call_may_end_by_something_raised() -> None:
    assert wrong_endings({"OK": 5, "INVALID_ARGUMENT": 2}) == []
    assert len(wrong_endings({f"{RAISED} (x)": 1, f"{GONE} (y)": 2})) == 2


def test_too_little_is_no_pass() -> None:
    assert Report("calls", 1, 1.0, {}).is_good
    assert not Report("calls", 1, 1.0, {}, shortfalls=["no call of /x"]).is_good
    assert not Report("calls", 1, 1.0, {}, problems=["x"]).is_good


# ---------------------------------------------------------------- live clusters


DEFECT_CALLS = 3_000
"""A seeded defect needs a certain request; 200 random calls may not contain it."""


def campaign(cluster: Processes, calls: int, *methods: str) -> Report:
    made = CallsCampaign(
        cluster, seed=secrets.randbits(32), calls=calls, announce=lambda _: None, methods=methods
    )
    return asyncio.run(made.run())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("cluster"), settings=SETTINGS) as cluster:
        yield cluster


@pytest.mark.integration
def test_the_campaign_knows_every_service_that_a_node_serves(cluster: Processes) -> None:
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    with grpc.insecure_channel(cluster.voters[0].address) as channel:
        call = channel.stream_stream(
            path,
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        answer = next(iter(call(iter([request]), timeout=60)))
    served = {each.name for each in answer.list_services_response.service}
    assert served <= {path.split("/")[1] for path in (*METHODS, EXCHANGE)}


@pytest.mark.integration
def test_a_short_campaign_changes_nothing(cluster: Processes) -> None:
    report = campaign(cluster, SHORT_CALLS)
    assert report.is_good, "\n".join(report.lines())


@pytest.mark.nightly
@pytest.mark.integration
def test_the_whole_campaign_changes_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "cluster", settings=SETTINGS) as cluster:
        report = campaign(cluster, WHOLE_CALLS)
    assert report.is_good, "\n".join(report.lines())


_SERVICE = "/quorum.v1."


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize(
    ("defect", "method", "words"),
    [
        ("vote_raises_epoch", EXCHANGE, "epoch was"),
        ("call_ends_process", _SERVICE + "RaftService/Fetch", GONE),
        pytest.param(
            "call_raises", _SERVICE + "RaftService/Fetch", RAISED, marks=pytest.mark.nightly
        ),
        pytest.param(
            "image_changes",
            _SERVICE + "AdminService/DescribeCluster",
            "image",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "refused_write_applies",
            _SERVICE + "MetadataService/Write",
            "have no acknowledgement",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_defect_is_noticed(tmp_path: Path, defect: str, method: str, words: str) -> None:
    with running(tmp_path / "cluster", settings=SETTINGS, starts=False) as cluster:
        cluster.environment[VARIABLE] = defect
        cluster.program = "tests.campaigns.broken_node"
        cluster.start_all()
        report = campaign(cluster, DEFECT_CALLS, method)
    assert any(words in problem for problem in report.problems), "\n".join(report.lines())
