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
