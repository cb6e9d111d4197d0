"""What watchers of real servers see: /metrics, /livez, /readyz, gRPC health and reflection."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from quorate.demo.local_cluster import HOST, LocalNode
from quorate.services.health import READINESS
from quorum.v1 import admin_pb2, metadata_pb2, raft_pb2
from tests.integration.processes import Processes, running
from tests.integration.traffic import wait_equal_images, write_configs
from tests.support.doc_metrics import CATALOG

pytestmark = pytest.mark.integration

SERVICES = {
    service.full_name
    for module in (raft_pb2, metadata_pb2, admin_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
}
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def page(node: LocalNode, path: str) -> tuple[int, str, str]:
    """Status, content type and body."""
    url = f"http://{HOST}:{node.metrics_port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def samples(node: LocalNode) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page(node, "/metrics")[2])
        for sample in family.samples
    }


def health(node: LocalNode, service: str) -> int:
    with grpc.insecure_channel(node.address) as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        return int(health_pb2_grpc.HealthStub(channel).Check(request, timeout=30).status)


def test_metrics_are_those_of_the_catalog_and_agree_with_each_other(cluster: Processes) -> None:
    write_configs(cluster, ["1", "2", "3"])
    wait_equal_images(cluster, cluster.voters)
    leader = cluster.leader()
    pages = {node.id: samples(node) for node in cluster.voters}
    for found in pages.values():
        names = {
            name
            for name, _ in found
            if name.startswith("quorate_") and not name.endswith("_created")
        }
        known = tuple(CATALOG)
        assert [name for name in names if not name.startswith(known)] == []
        states = [value for (name, _), value in found.items() if name == "quorate_raft_state"]
        assert sum(states) == 1
    leading = [
        node_id
        for node_id, found in pages.items()
        if found["quorate_raft_state", (("state", "leader"),)] == 1
    ]
    assert leading == [leader.id]
    assert len({found["quorate_raft_epoch", ()] for found in pages.values()}) == 1


def test_metrics_name_their_content_type_and_help(cluster: Processes) -> None:
    status, kind, text = page(cluster.voters[0], "/metrics")
    assert status == 200
    assert kind.startswith(("text/plain; version=", "application/openmetrics-text"))
    typed = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE quorate_")]
    helped = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP quorate_")]
    assert sorted(typed) == sorted(helped)
    assert len(typed) == len(set(typed)) > 0


def test_probes_of_a_node_that_serves(cluster: Processes) -> None:
    for node in cluster.voters:
        for path in ("/livez", "/readyz"):
            status, _, text = page(node, path)
            assert (status, text.splitlines()[-1]) == (200, "ok")
            body = json.loads(page(node, f"{path}?format=json")[2])
            assert body["ok"] is True
            assert all(check["ok"] for check in body["checks"])
    assert page(cluster.voters[0], "/nothing")[0] == 404


def test_health_and_reflection(cluster: Processes) -> None:
    for node in cluster.voters:
        assert {health(node, name) for name in ("", READINESS, *SERVICES)} == {SERVING}
        with grpc.insecure_channel(node.address) as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            ask = reflection_pb2.ServerReflectionRequest
            (answer,) = stub.ServerReflectionInfo(iter([ask(list_services="")]), timeout=30)
            listed = {service.name for service in answer.list_services_response.service}
            assert listed >= SERVICES
            for service in SERVICES:
                question = ask(file_containing_symbol=service)
                (answer,) = stub.ServerReflectionInfo(iter([question]), timeout=30)
                files = [
                    FileDescriptorProto.FromString(data)
                    for data in answer.file_descriptor_response.file_descriptor_proto
                ]
                own = [f"{file.package}.{each.name}" for file in files for each in file.service]
                assert service in own


def test_a_node_without_a_quorum_is_alive_and_not_ready(cluster: Processes) -> None:
    """Alone it must not be restarted by a supervisor, nor be sent any clients."""
    alone, *others = cluster.voters
    for node in others:
        cluster.stop(node)
    cluster.until("not ready", lambda: page(alone, "/readyz")[0] == 503 or None)
    assert page(alone, "/livez")[0] == 200
    cluster.until("NOT_SERVING", lambda: health(alone, READINESS) == NOT_SERVING or None)
    assert health(alone, "") == SERVING
    body = json.loads(page(alone, "/readyz?format=json")[2])
    reasons = {check["name"]: check["reason"] for check in body["checks"] if not check["ok"]}
    # The reason for the missing leader depends on the timing of the stops.
    refusal_texts = ("resigned", "no leader", "has not committed", "has not answered")
    assert any(words in reasons["leader_known"] for words in refusal_texts), reasons
    cluster.start_all()
    # Ready once is enough: on a busy machine it may be a record behind a moment later.
    cluster.until("ready", lambda: page(alone, "/readyz")[0] == 200 or None)
