"""The deployment files agree with the code and with each other."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from quorate.cli.exits import Exit
from quorate.cli.main import cli
from quorate.config.addresses import parse_address
from quorate.config.load import load_config
from quorate.config.voter_addresses import parse_voter
from quorum.errors import ConfigError
from tests.support.image import (
    DOCKERFILE,
    base_images,
    default_command,
    exposed_ports,
    healthcheck,
    image_environment,
    image_user,
)
from tests.support.unit_file import UNIT, service_section

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
NODES = {name: each for name, each in SERVICES.items() if name in ("n1", "n2", "n3")}
OURS = {name: each for name, each in SERVICES.items() if each["image"] == "quorate"}
PINNED = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")
EXPOSURE_MAX = 4.0


def test_no_node_is_the_first_process_of_its_container() -> None:
    """That one ignores a SIGTERM without a handler: a stop would wait for the grace period."""
    assert set(NODES) < set(OURS)
    assert [name for name, each in OURS.items() if each.get("init") is not True] == []


# ---------------------------------------------------------------------- image


def test_the_image_is_compiled_by_an_optimised_interpreter() -> None:
    """Both stages need the same version: an extension is for one."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    bases = base_images()
    assert len(bases) == 2, "one stage builds, the other has no compiler"
    assert len(set(bases)) == 1
    assert bases[0].startswith("python:"), "the official images are built with optimisations"
    assert "QUORATE_COMPILED=1 /opt/quorate/bin/pip install" in text


@pytest.mark.parametrize(
    "image",
    [
        *base_images(),
        *(each["image"] for name, each in SERVICES.items() if name not in OURS),
    ],
)
def test_images_of_others_are_pinned_by_digest(image: str) -> None:
    assert PINNED.fullmatch(image), f"{image} may be another image tomorrow"


def test_the_user_of_the_image_is_numeric_and_not_root() -> None:
    user, group = image_user()
    assert user > 0
    assert group > 0


REACHABLE = ["node.id=1", "security.unsafe_insecure_listeners=true"]


def test_a_container_without_certificates_says_that_it_may_be_reached() -> None:
    """Its metrics are at every address, for probes."""
    with pytest.raises(ConfigError, match=r"metrics\.listen is 0\.0\.0\.0:9191, beyond loopback"):
        load_config(None, environment=image_environment(), flags=["node.id=1"])


def test_the_image_exposes_the_ports_of_the_defaults() -> None:
    config = load_config(None, environment=image_environment(), flags=REACHABLE).config
    ports = {parse_address(each)[1] for each in (config.listeners.client, config.metrics.listen)}
    assert ports < exposed_ports()


def test_the_health_check_asks_by_the_node_s_own_configuration() -> None:
    """So it also works with another port or with TLS; tests/unit/cli/test_probe.py has both."""
    assert healthcheck() == ["quorate", "probe"]
    assert "probe" in cli.list_commands(click.Context(cli))


def test_the_image_starts_a_command_that_exists() -> None:
    assert default_command()[0] == "quorate"
    assert default_command()[1] in cli.list_commands(click.Context(cli))


# ---------------------------------------------------------------------- compose


@pytest.mark.parametrize("name", OURS)
def test_a_container_of_ours_can_write_to_its_volumes_only(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def published(service: dict[str, Any]) -> dict[int, int]:
    """Port in the container to port of the machine; all of them on loopback."""
    found = {}
    for text in service.get("ports", ()):
        host, outside, inside = text.split(":")
        assert host == "127.0.0.1", text
        found[int(inside)] = int(outside)
    return found


def test_each_node_is_published_at_the_port_it_is_advertised_at() -> None:
    """So one line in /etc/hosts is enough for clients outside of the containers."""
    for name, service in NODES.items():
        environment = service["environment"]
        config = load_config(
            None, environment={**image_environment(), **environment}, flags=[]
        ).config
        host, port = parse_address(config.listeners.reached_by_clients_at)
        assert host == service["hostname"] == name
        assert port == parse_address(config.listeners.client)[1]
        assert published(service)[port] == port
        voters = [parse_voter(each) for each in environment["VOTERS"].split(",")]
        own = next(each for each in voters if each.key.id == config.node.id)
        assert (own.endpoints[0].host, own.endpoints[0].port) == (host, port)
        assert set(config.bootstrap.servers) == {each.endpoints[0].address for each in voters}


def test_prometheus_grafana_and_the_console_are_published() -> None:
    assert published(SERVICES["prometheus"]) == {9090: 9090}
    assert published(SERVICES["grafana"]) == {3000: 3000}
    assert published(SERVICES["console"]) == {9192: 9192}


def test_the_console_of_the_compose_file_reads_the_nodes_and_prometheus() -> None:
    command = SERVICES["console"]["command"]
    assert command[0] == "console"
    wanted = NODES["n1"]["environment"]["QUORATE__BOOTSTRAP__SERVERS"]
    assert command[command.index("--bootstrap") + 1] == wanted
    assert command[command.index("--prometheus") + 1] == "http://prometheus:9090"
    shown = CliRunner().invoke(cli, ["console", "--help"]).output
    assert [each for each in command if each.startswith("--") and each not in shown] == []


def test_prometheus_scrapes_every_node() -> None:
    scrape = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text("utf-8"))
    port = parse_address(image_environment()["QUORATE__METRICS__LISTEN"])[1]
    targets = scrape["scrape_configs"][0]["static_configs"][0]["targets"]
    assert sorted(targets) == sorted(f"{name}:{port}" for name in NODES)


# ---------------------------------------------------------------------- systemd


def test_the_unit_is_ready_by_notification_and_watched() -> None:
    service = service_section()
    assert service["Type"] == "notify"
    defaults = load_config(None, environment=image_environment(), flags=REACHABLE).config
    stop_s = defaults.limits.shutdown_ms_max / 1000
    # Leadership is transferred, then disk work ended: each may take that long.
    assert int(service["TimeoutStopSec"]) > 2 * stop_s
    assert int(service["WatchdogSec"]) * 1000 > 5 * defaults.quorum.fetch_timeout_ms


def test_the_unit_restarts_failures_but_no_mistake() -> None:
    service = service_section()
    assert service["Restart"] == "on-failure"
    not_restarted = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert not_restarted == {Exit.USAGE, Exit.REFUSED}


def test_the_unit_starts_a_command_that_exists() -> None:
    words = shlex.split(service_section()["ExecStart"])
    assert Path(words[0]).name == "quorate"
    shown = CliRunner().invoke(cli, [words[1], "--help"])
    assert shown.exit_code == 0
    assert words[2] in shown.output


def test_the_unit_is_hardened() -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("the exposure of the unit needs systemd-analyze")
    usage = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True)
    if "--offline" not in usage.stdout:
        pytest.skip("the exposure of the unit needs a systemd-analyze that reads files")
    shown = subprocess.run(
        [tool, "security", "--offline=true", "--no-pager", str(UNIT)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", shown.stdout)
    assert found is not None, shown.stderr
    assert float(found[1]) < EXPOSURE_MAX
