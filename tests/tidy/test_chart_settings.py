"""Settings under ``config`` of the Helm chart: what they need is rendered, or they are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from quorate.config.addresses import parse_address
from quorate.config.settings import settings
from quorate.config.voter_addresses import parse_voter
from tests.support.chart import BOUND, CHART, INSECURE, NAMESPACE, ROOT, one, refusal, render
from tests.support.custom_resources import validate_custom
from tests.tidy.test_chart import config_of, node_environment, pod_of

PORTS = {"sasl": 9194, "peer": 9195, "peer_tcp": 9196}
LISTENERS = {
    **BOUND,
    "config": {"listeners": {name: f"0.0.0.0:{port}" for name, port in PORTS.items()}},
}
TOKEN = {
    **BOUND,
    "metrics": {"tls": True, "tokenSecret": {"name": "scrape", "key": "word"}},
    "serviceMonitor": {"enabled": True},
}


def numbered(ports: list[dict[str, Any]], field: str) -> dict[str, int]:
    return {each["name"]: each[field] for each in ports}


def test_a_listener_of_config_is_reached() -> None:
    objects = render(LISTENERS)
    names = {name.replace("_", "-"): port for name, port in PORTS.items()}
    container = numbered(pod_of(LISTENERS)["containers"][0]["ports"], "containerPort")
    assert container == {"client": 9190, "metrics": 9191, **names}
    headless = one(objects, "Service", "quorate-nodes")["spec"]["ports"]
    assert numbered(headless, "port") == container
    assert numbered(one(objects, "Service")["spec"]["ports"], "port") == {
        "client": 9190, "sasl": PORTS["sasl"],
    }  # fmt: skip
    for each in (*headless, *one(objects, "Service")["spec"]["ports"]):
        assert each["targetPort"] == each["name"]
    rules = one(objects, "NetworkPolicy")["spec"]["ingress"]
    assert [{port["port"] for port in rule["ports"]} for rule in rules] == [
        {"client", "peer", "peer-tcp"}, {"client", "sasl"}, {"metrics"},
    ]  # fmt: skip


def test_a_listener_of_config_is_advertised_and_found() -> None:
    config = config_of(LISTENERS, 1)
    host = f"quorate-1.quorate-nodes.{NAMESPACE}.svc.cluster.local"
    assert config.listeners.reached_by_peers_at == f"{host}:{PORTS['peer']}"
    assert config.listeners.reached_by_sasl_clients_at == f"{host}:{PORTS['sasl']}"
    assert config.listeners.reached_by_clients_at == f"{host}:9190"
    assert config.listeners.tcp_port == PORTS["peer_tcp"]
    script = pod_of(LISTENERS)["initContainers"][0]["args"][0]
    voters = script.split("--initial-voters ")[1].split('"')[0].split(",")
    own = [config_of(LISTENERS, number).listeners.reached_by_peers_at for number in range(3)]
    assert [parse_voter(each).endpoints[0].address for each in voters] == own
    assert list(config.bootstrap.servers) == own
    assert parse_address(node_environment(LISTENERS, 1)["QUORATE_BOOTSTRAP"])[1] == 9190


def test_an_advertised_address_of_config_wins() -> None:
    given = {"sasl": "0.0.0.0:9194", "advertised_sasl": "quorate.example:443"}
    values = {**BOUND, "config": {"listeners": given}}
    assert config_of(values, 0).listeners.reached_by_sasl_clients_at == "quorate.example:443"


def test_the_token_of_metrics_is_mounted_and_sent() -> None:
    pod = pod_of(TOKEN)
    (volume,) = (each for each in pod["volumes"] if each["name"] == "metrics")
    assert volume["secret"]["secretName"] == "scrape"
    assert volume["secret"]["defaultMode"] & 0o007 == 0, "a node refuses what all can read"
    (item,) = volume["secret"]["items"]
    mounts = pod["containers"][0]["volumeMounts"]
    (mount,) = (each for each in mounts if each["name"] == "metrics")
    assert str(config_of(TOKEN, 0).metrics.token_file) == f"{mount['mountPath']}/{item['path']}"
    monitor = one(render(TOKEN), "ServiceMonitor")
    validate_custom(monitor)
    sent = monitor["spec"]["endpoints"][0]["authorization"]["credentials"]
    assert sent == {"name": "scrape", "key": item["key"]} == {"name": "scrape", "key": "word"}


@pytest.mark.parametrize("values", [BOUND, LISTENERS, TOKEN], ids=["bound", "listeners", "token"])
def test_no_variable_is_written_twice(values: dict[str, Any]) -> None:
    """Kubernetes takes the last one, and its own tools take one or the other."""
    pod = pod_of(values)
    for container in (*pod["initContainers"], *pod["containers"]):
        names = [each["name"] for each in container["env"]]
        assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    "values", [INSECURE, {**TOKEN, "tls": {"secretName": "a", "operator": "b"}}]
)
def test_what_the_chart_sets_cannot_be_set_a_second_time(values: dict[str, Any]) -> None:
    keys = {setting.environment_name: key for key, setting in settings().items()}
    (container,) = pod_of(values)["containers"]
    for each in container["env"]:
        if each["name"] in keys and keys[each["name"]] != "bootstrap.servers":
            section, _, name = keys[each["name"]].partition(".")
            said = refusal({**values, "config": {section: {name: "a"}}})
            assert f"config.{section}.{name} cannot be set here" in said


def test_other_nodes_to_ask_replace_the_initial_voters() -> None:
    """After a recovery the only voter may be none of them."""
    values = {**BOUND, "config": {"bootstrap": {"servers": ["quorate-4.example:9190"]}}}
    assert list(config_of(values, 0).bootstrap.servers) == ["quorate-4.example:9190"]
    names = [each["name"] for each in pod_of(values)["containers"][0]["env"]]
    assert len(set(names)) == len(names)


def test_config_knows_the_settings_of_the_product() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    sections = schema["properties"]["config"]["properties"]
    found = {
        f"{section}.{name}"
        for section, each in sections.items()
        for name in each["propertyNames"]["enum"]
    }
    assert found == set(settings())


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"node": {"data_dir": "/tmp/x"}}, "config.node.data_dir cannot be set here: the volume"),
        ({"node": {"DATA_DIR": "/tmp/x"}}, "DATA_DIR"),
        ({"limits": {"no_such": 1}}, "no_such"),
        ({"no_such": {"a": 1}}, "no_such"),
        ({"metrics": {"token_file": "/tmp/x"}}, "set metrics.tokenSecret"),
        ({"listeners": {"sasl": "127.0.0.1:9194"}}, "write 0.0.0.0:PORT"),
        ({"listeners": {"peer": "0.0.0.0:0"}}, "write 0.0.0.0:PORT"),
        ({"listeners": {"peer": "0.0.0.0:9190"}}, "port 9190 is taken"),
        ({"listeners": {"peer": "0.0.0.0:99999"}}, "port 99999 is taken by another"),
        ({"listeners": {"peer": "0.0.0.0:9195", "peer_tcp": "[::]:9195"}}, "port 9195 is taken"),
        ({"limits": {"shutdown_ms_max": 60000}}, "terminationGracePeriodSeconds must be 140"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_work_is_refused(config: dict[str, Any], words: str) -> None:
    assert words in " ".join(refusal({**BOUND, "config": config}).split())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"fullnameOverride": "Foo_Bar"}, "Foo_Bar is no name of a Service"),
        ({"nameOverride": "a.b"}, "quorate-a.b is no name of a Service"),
        ({"metrics": {"tokenSecret": {"name": "a"}}}, "metrics.tokenSecret needs metrics.tls"),
        (
            {"security": {"mode": "tls"}, "config": {"listeners": {"sasl": "0.0.0.0:9194"}}},
            "config.listeners.sasl needs security.mode=bound",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_refused(values: dict[str, Any], words: str) -> None:
    assert words in refusal({**BOUND, **values})


def test_a_longer_stop_is_possible() -> None:
    config = {"limits": {"shutdown_ms_max": 60000}}
    assert pod_of({**BOUND, "config": config, "terminationGracePeriodSeconds": 140})


def test_the_page_about_sizes_has_the_chart_s_values() -> None:
    page = (ROOT / "docs" / "operations" / "size.md").read_text("utf-8")
    resources = pod_of(BOUND)["containers"][0]["resources"]
    storage = one(render(BOUND), "StatefulSet")["spec"]["volumeClaimTemplates"][0]["spec"]
    assert resources == {
        "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"},
    }  # fmt: skip
    assert storage["resources"]["requests"]["storage"] == "20Gi"
    said = (
        "asks for 1 GiB, one core and 20 GiB; its limit is 2 GiB of memory, and none of processors"
    )
    assert said in page


def test_files_that_settings_name_are_in_the_secret_of_the_certificates() -> None:
    """Goal: the line of docs/operations/kubernetes.md works."""
    page = (ROOT / "docs/operations/kubernetes.md").read_text(encoding="utf-8")
    line = next(each for each in page.splitlines() if "{crl_file" in each)
    values = {**BOUND, **yaml.safe_load("{" + line.split("`")[1] + "}")}
    values["config"]["security"] = {
        "jwt_jwks_file": "/etc/quorate/tls/jwks.json", "jwt_issuer": "i", "jwt_audience": "a",
    }  # fmt: skip
    config = config_of(values, 0)
    (mount,) = (
        each["mountPath"]
        for each in pod_of(values)["containers"][0]["volumeMounts"]
        if each["name"] == "tls"
    )
    assert str(config.tls.crl_file) == f"{mount}/crl.pem"
    assert str(config.security.jwt_jwks_file) == f"{mount}/jwks.json"
    assert config.security.jwt_issuer == "i"
