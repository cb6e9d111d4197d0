"""The pods of a rendered StatefulSet, as Kubernetes would make them: nothing is known here besides.

Reads what the chart says and fails on what it does not know, so a field that the rehearsal does
not carry out is not overlooked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.image import default_command, image_environment

REHEARSED = {
    "name", "image", "imagePullPolicy", "command", "args", "env", "ports", "startupProbe",
    "livenessProbe", "readinessProbe", "lifecycle", "securityContext", "resources", "volumeMounts",
}  # fmt: skip
"""Fields of a container. Images, resources and capabilities are not carried out."""


@dataclass(frozen=True, slots=True)
class Probe:
    """An HTTP probe of the kubelet."""

    path: str
    port: int
    period_s: float
    timeout_s: float
    failures_max: int


@dataclass(frozen=True, slots=True)
class Container:
    """One container of one pod: its command and environment, expanded."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    probes: Mapping[str, Probe]
    pre_stop: tuple[str, ...]
    is_root_read_only: bool


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of the set. ``mounts`` has volume names by path in the container."""

    name: str
    ordinal: int
    host_name: str
    first: tuple[Container, ...]
    main: Container
    mounts: Mapping[str, str]
    grace_s: float


@dataclass(frozen=True, slots=True)
class PodSet:
    """A StatefulSet with its headless Service."""

    pods: tuple[Pod, ...]
    is_parallel: bool
    publishes_not_ready: bool
    min_ready_s: float
    initial_voters: int


def pod_set(objects: Sequence[Mapping[str, Any]]) -> PodSet:
    """The set that these objects describe."""
    spec = _one(objects, "StatefulSet")["spec"]
    headless = _one(objects, "Service", spec["serviceName"])["spec"]
    assert headless["clusterIP"] == "None"
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}
    return PodSet(
        tuple(_pod(objects, ordinal) for ordinal in range(spec["replicas"])),
        spec["podManagementPolicy"] == "Parallel",
        headless.get("publishNotReadyAddresses", False),
        spec["minReadySeconds"],
        spec["template"]["spec"]["initContainers"][0]["args"][0].count("@"),
    )


def _pod(objects: Sequence[Mapping[str, Any]], ordinal: int) -> Pod:
    stateful = _one(objects, "StatefulSet")
    spec = stateful["spec"]
    template = spec["template"]["spec"]
    assert template["shareProcessNamespace"], "else the node would be the first process"
    name = f"{stateful['metadata']['name']}-{ordinal}"
    namespace = stateful["metadata"]["namespace"]
    fields = {
        "metadata.name": name,
        "metadata.labels['apps.kubernetes.io/pod-index']": str(ordinal),
    }
    maps = {
        each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"
    }
    (main,) = template["containers"]
    return Pod(
        name,
        ordinal,
        f"{name}.{spec['serviceName']}.{namespace}.svc.cluster.local",
        tuple(_container(each, fields, maps) for each in template["initContainers"]),
        _container(main, fields, maps),
        {each["mountPath"]: each["name"] for each in main["volumeMounts"]},
        template["terminationGracePeriodSeconds"],
    )


def _container(
    text: Mapping[str, Any], fields: Mapping[str, str], maps: Mapping[str, Mapping[str, str]]
) -> Container:
    assert set(text) <= REHEARSED, set(text) - REHEARSED
    entrypoint, arguments = default_command()[:1], default_command()[1:]
    return Container(
        text["name"],
        (*text.get("command", entrypoint), *text.get("args", arguments)),
        _environment(text["env"], fields, maps),
        {
            kind: _probe(text[f"{kind}Probe"], text["ports"])
            for kind in ("startup", "liveness", "readiness")
            if f"{kind}Probe" in text
        },
        tuple(text.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ())),
        text["securityContext"]["readOnlyRootFilesystem"],
    )


def _environment(
    entries: Sequence[Mapping[str, Any]],
    fields: Mapping[str, str],
    maps: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    """The image's environment and the container's; ``$(NAME)`` is what stood before."""
    found = image_environment()
    for each in entries:
        source = each.get("valueFrom", {})
        if "fieldRef" in source:
            found[each["name"]] = fields[source["fieldRef"]["fieldPath"]]
        elif "configMapKeyRef" in source:
            key = source["configMapKeyRef"]
            found[each["name"]] = maps[key["name"]][key["key"]]
        else:
            found[each["name"]] = re.sub(
                r"\$\((\w+)\)", lambda match: found.get(match[1], match[0]), each["value"]
            )
    return found


def _probe(text: Mapping[str, Any], ports: Sequence[Mapping[str, Any]]) -> Probe:
    asked = text["httpGet"]
    assert asked["scheme"] == "HTTP"
    numbers = {each["name"]: each["containerPort"] for each in ports}
    return Probe(
        asked["path"],
        numbers[asked["port"]],
        text["periodSeconds"],
        text["timeoutSeconds"],
        text["failureThreshold"],
    )


def _one(objects: Sequence[Mapping[str, Any]], kind: str, name: str = "") -> Mapping[str, Any]:
    (found,) = (
        each
        for each in objects
        if each["kind"] == kind and (not name or each["metadata"]["name"] == name)
    )
    return found
