"""The pods of a rendered StatefulSet, as Kubernetes would make them: nothing is known here besides.

Reads what the chart says and fails on what it does not know, so a field that the rehearsal does
not carry out is not overlooked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.kubernetes.pod_user import PodUser
from tests.integration.kubernetes.volumes import Volume, volumes_of
from tests.support.image import default_command, image_environment

REHEARSED = {
    "name", "image", "imagePullPolicy", "command", "args", "env", "ports", "startupProbe",
    "livenessProbe", "readinessProbe", "lifecycle", "securityContext", "resources", "volumeMounts",
}  # fmt: skip
"""Fields of a container. Resources are not carried out."""
CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""The rights that every process of a pod runs with here."""
CHANGEABLE = {
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}  # fmt: skip
"""Fields of a StatefulSet that an update may change; Kubernetes refuses one of any other."""


@dataclass(frozen=True, slots=True)
class Probe:
    """An HTTP probe of the kubelet. With the scheme https it checks no certificate."""

    scheme: str
    path: str
    port: int
    period_s: float
    timeout_s: float
    failures_max: int


@dataclass(frozen=True, slots=True)
class Container:
    """One container of one pod: its command and environment, expanded.

    ``release`` has the files of the release that the image is made of.
    """

    name: str
    release: Path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    probes: Mapping[str, Probe]
    pre_stop: tuple[str, ...]
    is_root_read_only: bool


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of the set. ``mounts`` has volumes by path in the container."""

    name: str
    ordinal: int
    host_name: str
    first: tuple[Container, ...]
    main: Container
    mounts: Mapping[str, Volume]
    read_only: frozenset[str]
    user: PodUser
    grace_s: float


@dataclass(frozen=True, slots=True)
class PodSet:
    """A StatefulSet with its headless Service. ``fixed`` is what no update may change."""

    pods: tuple[Pod, ...]
    is_parallel: bool
    publishes_not_ready: bool
    min_ready_s: float
    initial_voters: int
    fixed: Mapping[str, Any]


def pod_set(objects: Sequence[Mapping[str, Any]], images: Mapping[str, Path]) -> PodSet:
    """The set that these objects describe; ``images`` has the files of each image's release."""
    spec = _one(objects, "StatefulSet")["spec"]
    headless = _one(objects, "Service", spec["serviceName"])["spec"]
    assert headless["clusterIP"] == "None"
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}
    return PodSet(
        tuple(_pod(objects, images, ordinal) for ordinal in range(spec["replicas"])),
        spec["podManagementPolicy"] == "Parallel",
        headless.get("publishNotReadyAddresses", False),
        spec["minReadySeconds"],
        spec["template"]["spec"]["initContainers"][0]["args"][0].count("@"),
        {key: value for key, value in spec.items() if key not in CHANGEABLE},
    )


def _pod(objects: Sequence[Mapping[str, Any]], images: Mapping[str, Path], ordinal: int) -> Pod:
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
    volumes = volumes_of(spec)
    context = template["securityContext"]
    assert context["runAsNonRoot"]
    for each in template["initContainers"]:
        assert each["volumeMounts"] == main["volumeMounts"], "here they are the pod's"
    return Pod(
        name,
        ordinal,
        f"{name}.{spec['serviceName']}.{namespace}.svc.cluster.local",
        tuple(_container(each, fields, maps, images) for each in template["initContainers"]),
        _container(main, fields, maps, images),
        {each["mountPath"]: volumes[each["name"]] for each in main["volumeMounts"]},
        frozenset(each["mountPath"] for each in main["volumeMounts"] if each.get("readOnly")),
        PodUser(context["runAsUser"], context["runAsGroup"], context["fsGroup"]),
        template["terminationGracePeriodSeconds"],
    )


def _container(
    text: Mapping[str, Any],
    fields: Mapping[str, str],
    maps: Mapping[str, Mapping[str, str]],
    images: Mapping[str, Path],
) -> Container:
    assert set(text) <= REHEARSED, set(text) - REHEARSED
    assert text["securityContext"].items() >= CONFINED.items()
    release = images[text["image"]]
    dockerfile = release / "deploy" / "Dockerfile"
    entrypoint, arguments = default_command(dockerfile)[:1], default_command(dockerfile)[1:]
    return Container(
        text["name"],
        release,
        (*text.get("command", entrypoint), *text.get("args", arguments)),
        _environment(text["env"], image_environment(dockerfile), fields, maps),
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
    of_image: Mapping[str, str],
    fields: Mapping[str, str],
    maps: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    """The image's environment and the container's; ``$(NAME)`` is what stood before."""
    found = dict(of_image)
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
    numbers = {each["name"]: each["containerPort"] for each in ports}
    return Probe(
        asked["scheme"].lower(),
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
