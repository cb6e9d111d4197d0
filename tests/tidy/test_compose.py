"""deploy/compose.yaml is valid, and everything that it names exists on both sides."""

from __future__ import annotations

import copy
import json
import re
import urllib.parse
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from quorate.config.load import load_config
from tests.support.image import image_environment

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
SCHEMA = json.loads((ROOT / "tests/data/compose-spec/compose-spec.json").read_text("utf-8"))
READ_BY_THE_IMAGE = {"PATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONNODEBUGRANGES"}
PUBLISHED_BY_GRAFANA = {"GF_AUTH_ANONYMOUS_ENABLED", "GF_AUTH_ANONYMOUS_ORG_ROLE"}
"""Section and key of Grafana's configuration, in capitals behind GF."""
OWN_PORTS = {"prometheus": 9090, "grafana": 3000}
"""Where the products listen unless told otherwise."""


def mistakes(document: dict[str, Any]) -> list[str]:
    validator = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
    return [each.message for each in validator.iter_errors(document)]


def test_it_is_what_the_compose_specification_permits() -> None:
    assert mistakes(COMPOSE) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("read_onyl", True),
        ("read_only", ["yes"]),
        ("ports", [{"target": 9190, "host": "127.0.0.1"}]),
        ("healthcheck", {"test": ["CMD", "true"], "intervall": "5s"}),
        ("tmpfs", {"/tmp": True}),
    ],
)
def test_a_wrong_field_would_be_noticed(key: str, value: object) -> None:
    document = copy.deepcopy(COMPOSE)
    document["services"]["n1"][key] = value
    assert mistakes(document) != []


def mounted(service: dict[str, Any]) -> dict[str, Path]:
    """Files and folders of this repository by their path in the container."""
    found = {}
    for text in service.get("volumes", ()):
        source, target, *mode = text.split(":")
        if source.startswith("."):
            assert mode == ["ro"], text
            found[target] = DEPLOY / source
    return found


def test_every_file_that_is_mounted_exists() -> None:
    places = [place for each in SERVICES.values() for place in mounted(each).values()]
    assert len(places) == 3
    assert [place for place in places if not place.exists()] == []


def test_every_volume_is_declared_and_used() -> None:
    named = {
        text.split(":")[0]
        for each in SERVICES.values()
        for text in each.get("volumes", ())
        if not text.startswith(".")
    }
    assert named == set(COMPOSE["volumes"])


def test_every_variable_of_a_node_is_read_by_somebody() -> None:
    """By the command, or as a setting; the loader refuses an unknown one."""
    for name in ("n1", "n2", "n3"):
        service = SERVICES[name]
        environment = service["environment"]
        assert all(isinstance(value, str) for value in environment.values())
        in_the_command = set(re.findall(r"\$\$(\w+)", service["command"][0]))
        settings = {key for key in environment if key.startswith("QUORATE__")}
        assert in_the_command | settings == set(environment)
        load_config(None, environment={**image_environment(), **environment}, flags=[])
    others = {key for key in image_environment() if not key.startswith("QUORATE__")}
    assert others <= READ_BY_THE_IMAGE


def test_prometheus_finds_its_configuration_and_its_rules() -> None:
    service = SERVICES["prometheus"]
    (place,) = service["command"]
    folder, name = place.removeprefix("--config.file=").rsplit("/", 1)
    configuration = mounted(service)[folder] / name
    rules = yaml.safe_load(configuration.read_text("utf-8"))["rule_files"]
    assert [each for each in rules if not (configuration.parent / each).is_file()] == []


def test_grafana_finds_its_source_and_its_dashboard() -> None:
    service = SERVICES["grafana"]
    places = mounted(service)
    provisioning = places["/etc/grafana/provisioning"]
    dashboards = yaml.safe_load((provisioning / "dashboards/quorate.yaml").read_text("utf-8"))
    folder = dashboards["providers"][0]["options"]["path"]
    assert [target for target in places if target.startswith(f"{folder}/")] != []
    sources = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text("utf-8"))
    asked = urllib.parse.urlsplit(sources["datasources"][0]["url"])
    assert asked.hostname in SERVICES
    assert asked.port == OWN_PORTS["prometheus"]
    assert set(service["environment"]) <= PUBLISHED_BY_GRAFANA


@pytest.mark.parametrize("name", OWN_PORTS)
def test_a_product_is_published_at_the_port_where_it_listens(name: str) -> None:
    assert [text.split(":")[2] for text in SERVICES[name]["ports"]] == [str(OWN_PORTS[name])]
