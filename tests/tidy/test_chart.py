"""What the Helm chart renders: valid for Kubernetes, and right for what the code offers."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from quorate.cli.main import cli
from quorate.config.addresses import parse_address
from quorate.config.load import load_config
from quorate.config.server_config import ServerConfig
from quorate.config.voter_addresses import parse_voter
from tests.support.chart import (
    BOUND,
    CHART,
    CLUSTER_ID,
    INSECURE,
    KUBERNETES,
    NAMESPACE,
    ROOT,
    helm,
    one,
    refusal,
    render,
)
from tests.support.custom_resources import custom_kinds, validate_custom
from tests.support.image import exposed_ports, image_environment, image_user

EVERYTHING: dict[str, Any] = {
    **BOUND,
    "replicas": 4,
    "joining": [1],
    "image": {"digest": "sha256:" + "a" * 64},
    "imagePullSecrets": [{"name": "pull"}],
    "tls": {"secretName": "quorate-tls", "operator": "stopping.example"},
    "metrics": {"tls": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {
        "clients": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}],
        "monitoring": [{"namespaceSelector": {"matchLabels": {"team": "b"}}}],
    },
    "config": {
        "snapshot": {"max_bytes_between": 20971520, "cpu_share": 0.5},
        "relay": {"fetch_from": ["a:9193", "b:9193"]},
        "quorum": {"auto_join": True},
    },
    "storage": {"className": "fast"},
    "antiAffinity": "preferred",
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "priorityClassName": "high",
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "service": {"annotations": {"e": "f"}},
}
VALUES = {
    "insecure": INSECURE,
    "bound": BOUND,
    "tls": {**BOUND, "security": {"mode": "tls"}},
    "one voter": {**INSECURE, "replicas": 1, "initialVoters": 1},
    "recovered": {**INSECURE, "logIncarnation": CLUSTER_ID},
    "maintenance": {**BOUND, "maintenance": True},
    "everything": EVERYTHING,
}


def pod_of(values: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = one(render(values), "StatefulSet")["spec"]["template"]["spec"]
    return spec


def node_environment(values: dict[str, Any], ordinal: int) -> dict[str, str]:
    """What Kubernetes makes of ``env`` for one pod, over the image's own."""
    found = {**image_environment()}
    name = f"quorate-{ordinal}"
    for each in pod_of(values)["containers"][0]["env"]:
        if "valueFrom" in each:
            path = each["valueFrom"]["fieldRef"]["fieldPath"]
            found[each["name"]] = name if path == "metadata.name" else str(ordinal)
            continue
        text = each["value"]
        for known, value in found.items():
            text = text.replace(f"$({known})", value)
        found[each["name"]] = text
    return found


def config_of(values: dict[str, Any], ordinal: int) -> ServerConfig:
    """The configuration that the node of this pod loads; it raises if one setting is unknown."""
    return load_config(None, environment=node_environment(values, ordinal), flags=[]).config


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_helm_finds_nothing_to_complain_about(values: dict[str, Any]) -> None:
    done = helm("lint", "--strict", str(CHART), values=values)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", [KUBERNETES, "1.37.0"])
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_every_object_is_one_that_kubernetes_takes(values: dict[str, Any], version: str) -> None:
    """Strict: a field that Kubernetes does not know is a mistake too."""
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("the schemas are those of kubernetes-validate, which is not installed")
    import kubernetes_validate

    objects = render(values)
    for each in objects:
        if each["kind"] in custom_kinds():
            validate_custom(each)
        else:
            kubernetes_validate.validate(each, version, strict=True)
    assert {each["metadata"]["namespace"] for each in objects} == {NAMESPACE}


def test_an_unknown_field_would_be_noticed() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    stateful = one(render(INSECURE), "StatefulSet")
    stateful["spec"]["template"]["spec"]["terminationGracePeriod"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(stateful, KUBERNETES, strict=True)


@pytest.mark.parametrize("place", ["spec", "endpoint"])
def test_an_unknown_field_of_a_service_monitor_would_be_noticed(place: str) -> None:
    monitor = one(render(EVERYTHING), "ServiceMonitor")
    validate_custom(monitor)
    spec = monitor["spec"]
    (spec if place == "spec" else spec["endpoints"][0])["scrapeIntervall"] = "15s"
    with pytest.raises(jsonschema.ValidationError, match="scrapeIntervall"):
        validate_custom(monitor)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_a_pod_s_environment_is_a_configuration_that_works(values: dict[str, Any]) -> None:
    config = config_of(values, 0)
    assert config.node.id == 0
    host = f"quorate-0.quorate-nodes.{NAMESPACE}.svc.cluster.local"
    assert parse_address(config.listeners.reached_by_clients_at)[0] == host
    assert parse_address(config.listeners.reached_by_peers_at)[0] == host
    ports = {each["containerPort"] for each in pod_of(values)["containers"][0]["ports"]}
    assert ports == {
        parse_address(each)[1] for each in (config.listeners.client, config.metrics.listen)
    }
    assert ports < exposed_ports()


def test_values_arrive_as_they_were_written() -> None:
    config = config_of(EVERYTHING, 1)
    assert config.snapshot.max_bytes_between == 20971520
    assert config.snapshot.cpu_share == 0.5
    assert list(config.relay.fetch_from) == ["a:9193", "b:9193"]
    assert config.quorum.auto_join


@pytest.mark.parametrize("count", [3, 5])
def test_all_nodes_are_formatted_with_the_same_voters(count: int) -> None:
    """The voters are the pods, under the addresses that they advertise, and their ids differ."""
    values = {**INSECURE, "replicas": 5, "initialVoters": count}
    script = pod_of(values)["initContainers"][0]["args"][0]
    text = script.split("--initial-voters ")[1].split('"')[0]
    voters = [parse_voter(each) for each in text.split(",")]
    assert [each.key.id for each in voters] == list(range(count))
    assert len({each.key.directory_id for each in voters}) == count
    for each in voters:
        own = config_of(values, each.key.id).listeners.reached_by_peers_at
        assert each.endpoints[0].address == own
    other = pod_of({**values, "clusterId": CLUSTER_ID[::-1]})["initContainers"][0]["args"][0]
    assert text not in other, "another cluster has other disks"


def test_bootstrap_servers_do_not_change_when_the_cluster_grows() -> None:
    """A changed environment would restart every node."""
    small, large = (pod_of({**BOUND, "replicas": count}) for count in (3, 5))
    assert small == large


def test_a_node_that_joins_again_restarts_no_other_one() -> None:
    """With one voter lost, a restart of a second one would stop all writes."""
    values = {**INSECURE, "joining": [1, 2]}
    assert pod_of(values) == pod_of(INSECURE)
    assert one(render(values), "ConfigMap")["data"] == {"joining": "1 2"}


def test_pods_start_together_and_are_found_before_they_are_ready() -> None:
    objects = render(INSECURE)
    stateful = one(objects, "StatefulSet")["spec"]
    assert stateful["podManagementPolicy"] == "Parallel"
    headless = one(objects, "Service", stateful["serviceName"])["spec"]
    assert headless["clusterIP"] == "None"
    assert headless["publishNotReadyAddresses"] is True
    assert not one(objects, "Service")["spec"].get("publishNotReadyAddresses")
    assert one(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    claim = stateful["volumeClaimTemplates"][0]
    mounts = stateful["template"]["spec"]["containers"][0]["volumeMounts"]
    assert claim["metadata"]["name"] in {each["name"] for each in mounts}
    assert set(stateful["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}


def test_all_selectors_find_the_pods() -> None:
    objects = render(EVERYTHING)
    template = one(objects, "StatefulSet")["spec"]["template"]
    labels = template["metadata"]["labels"].items()
    affinity = template["spec"]["affinity"]["podAntiAffinity"]
    found = [
        one(objects, "StatefulSet")["spec"]["selector"]["matchLabels"],
        one(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        one(objects, "Service")["spec"]["selector"],
        one(objects, "Service", "quorate-nodes")["spec"]["selector"],
        template["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
        affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"][
            "labelSelector"
        ]["matchLabels"],
    ]
    for selector in found:
        assert selector
        assert selector.items() <= labels


def test_two_nodes_never_share_a_machine() -> None:
    rules = pod_of(INSECURE)["affinity"]["podAntiAffinity"]
    (rule,) = rules["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"


@pytest.mark.parametrize("place", ["containers", "initContainers"])
@pytest.mark.parametrize("values", [INSECURE, EVERYTHING], ids=["insecure", "everything"])
def test_containers_are_confined_as_the_image_wants_it(values: dict[str, Any], place: str) -> None:
    pod = pod_of(values)
    user, group = image_user()
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (
        user, group,
    )  # fmt: skip
    assert pod["securityContext"]["fsGroup"] == group
    assert pod["automountServiceAccountToken"] is False
    for container in pod[place]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]


def test_probes_ask_what_the_node_serves() -> None:
    for values, scheme in ((BOUND, "HTTP"), (EVERYTHING, "HTTPS")):
        container = pod_of(values)["containers"][0]
        for name, path in (
            ("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz"),
        ):  # fmt: skip
            asked = container[name]["httpGet"]
            assert asked == {"path": path, "port": "metrics", "scheme": scheme}
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        assert ports["metrics"] == parse_address(config_of(values, 0).metrics.listen)[1]
        assert config_of(values, 0).metrics.tls is (scheme == "HTTPS")


def test_the_grace_period_is_longer_than_a_stop_may_take() -> None:
    limits = config_of(INSECURE, 0).limits
    # The command before the stop has ten seconds and a start; then transfer and disk work follow.
    assert pod_of(INSECURE)["terminationGracePeriodSeconds"] > 10 + 5 + (
        2 * limits.shutdown_ms_max / 1000
    )


@pytest.mark.parametrize("name", ["insecure", "tls", "everything"])
def test_leadership_is_transferred_before_a_pod_stops(name: str) -> None:
    command = pod_of(VALUES[name])["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert command[:2] == ["/bin/sh", "-c"]
    assert 'quorum transfer-leader --if-leader "$QUORATE__NODE__ID"' in command[2]
    shown = CliRunner().invoke(cli, ["quorum", "transfer-leader", "--help"]).output
    assert "--if-leader" in shown
    assert "--reason" in shown
    environment = node_environment(VALUES[name], 2)
    assert (
        environment["QUORATE_BOOTSTRAP"] == config_of(VALUES[name], 2).listeners.advertised_client
    )


def test_the_certificate_of_the_command_before_a_stop_is_an_operator_s() -> None:
    environment = node_environment(EVERYTHING, 0)
    assert environment["QUORATE_TLS_CERT"] == "/etc/quorate/tls/stopping.example.pem"
    assert "User:stopping.example" in config_of(EVERYTHING, 0).security.operators
    assert node_environment(VALUES["tls"], 2)["QUORATE_TLS_KEY"] == "/etc/quorate/tls/voter-2.key"


def test_each_node_uses_its_own_certificate() -> None:
    pod = pod_of(BOUND)
    (volume,) = (each for each in pod["volumes"] if "secret" in each)
    assert volume["secret"]["secretName"] == "quorate-tls"
    assert volume["secret"]["defaultMode"] & 0o007 == 0, "a node refuses a key that all can read"
    (mount,) = (
        each for each in pod["containers"][0]["volumeMounts"] if each["name"] == volume["name"]
    )
    for ordinal in range(3):
        config = config_of(BOUND, ordinal)
        assert str(config.tls.cert_file) == f"{mount['mountPath']}/voter-{ordinal}.pem"
        assert str(config.tls.key_file) == f"{mount['mountPath']}/voter-{ordinal}.key"
        assert config.tls.require_client_cert


def test_certificates_of_quorate_certs_fit_the_pods(tmp_path: Path) -> None:
    """Goal: files and names that `quorate certs` makes are those that the chart expects."""
    config = config_of(BOUND, 0)
    host = parse_address(config.listeners.reached_by_peers_at)[0]
    folder = tmp_path / "certs"
    run = CliRunner()
    assert run.invoke(cli, ["certs", "init", "--dir", str(folder)]).exit_code == 0
    issued = run.invoke(
        cli, ["-o", "json", "certs", "issue", "voter", "0", "--host", host, "--dir", str(folder)]
    )
    assert issued.exit_code == 0, issued.output
    names = json.loads(issued.stdout)["names"]
    assert config.tls.node_name.replace("{id}", "0") == names[0]
    assert host in names
    assert config.tls.cert_file.name in {each.name for each in folder.iterdir()}
    assert config.tls.key_file.name in {each.name for each in folder.iterdir()}


def test_only_those_who_need_a_port_reach_it() -> None:
    rules = one(render(INSECURE), "NetworkPolicy")["spec"]["ingress"]
    own = one(render(INSECURE), "StatefulSet")["spec"]["selector"]
    assert [(each["from"], each["ports"][0]["port"]) for each in rules] == [
        ([{"podSelector": own}], "client"),
        ([{"podSelector": {}}], "client"),
        ([{"namespaceSelector": {}}], "metrics"),
    ]
    restricted = one(render(EVERYTHING), "NetworkPolicy")["spec"]["ingress"]
    assert restricted[1]["from"] == EVERYTHING["networkPolicy"]["clients"]
    assert restricted[2]["from"] == EVERYTHING["networkPolicy"]["monitoring"]


def test_the_service_monitor_finds_the_headless_service() -> None:
    objects = render(EVERYTHING)
    monitor = one(objects, "ServiceMonitor")
    headless = one(objects, "Service", "quorate-nodes")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= headless["metadata"]["labels"].items()
    assert not wanted <= one(objects, "Service")["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {each["name"] for each in headless["spec"]["ports"]}
    assert set(endpoint) == {"port", "path", "interval", "scheme", "tlsConfig", "relabelings"}
    relabeled = {each["targetLabel"] for each in endpoint["relabelings"]}
    assert relabeled == {"job", "cluster"}, "as in prometheus.yaml"
    assert "ServiceMonitor" not in {each["kind"] for each in render(BOUND)}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "draw one with `quorate random-uuid`"),
        ({"clusterId": CLUSTER_ID}, "tls.secretName names the Secret"),
        ({"clusterId": CLUSTER_ID, "security": {"mode": "insecure"}}, "may do everything"),
        ({**INSECURE, "replicas": 1}, "replicas is below initialVoters"),
        ({**INSECURE, "joining": [3]}, "3 is no initial voter"),
        ({**INSECURE, "tls": {"secretName": "a"}}, "choose tls or bound"),
        ({**INSECURE, "initialVoters": 2}, "initialVoters"),
        ({**INSECURE, "replica": 3}, "replica"),
        ({**INSECURE, "security": {"mode": "none"}}, "mode"),
        (
            {**BOUND, "security": {"mode": "tls"}, "tls": {"secretName": "a", "operator": "b"}},
            "tls.operator is for security.mode=bound",
        ),
    ],
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any], words: str) -> None:
    assert words in refusal(values)


def test_the_chart_has_the_version_of_the_product() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]
