"""The deployment files agree with the documents."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_no_node_is_the_first_process_of_its_container() -> None:
    """That one ignores a SIGTERM without a handler: a stop would wait for the grace period."""
    services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text(encoding="utf-8"))[
        "services"
    ]
    nodes = {name: each for name, each in services.items() if each["image"] == "quorate"}
    assert len(nodes) == 3
    assert [name for name, each in nodes.items() if each.get("init") is not True] == []


def test_the_image_is_compiled_by_an_optimised_interpreter() -> None:
    """Both stages need the same version: an extension is for one."""
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    bases = [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")]
    assert len(set(bases)) == 1
    assert bases[0].startswith("python:"), "the official images are built with optimisations"
    assert "QUORATE_COMPILED=1 /opt/quorate/bin/pip install" in text
