"""A high watermark that is not known is -1 everywhere: in metrics and in answers (KIP-595)."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.client import BROKER, Client
from quorate.demo.ports import free_ports
from quorate.formatting import FormatPlan, format_directory
from quorate.server.node import ServerNode
from quorum.log.filesystem import OsFileSystem
from tests.support.lone_server import lone_config


@pytest.mark.parametrize("has_quorum", [False, True], ids=["alone", "bootstrapped"])
def test_metrics_and_answers_agree(tmp_path: Path, has_quorum: bool) -> None:
    (port,) = free_ports(1)
    config = lone_config(tmp_path / "voter", shutdown_ms_max=60_000, port=port)
    if not has_quorum:
        plan = FormatPlan(tmp_path / "observer", "c2ltdWxhdGVkLWNsdXN0ZQ", 1, b"o" * 16, ())
        format_directory(OsFileSystem(), plan)
        config = replace(config, node=replace(config.node, data_dir=tmp_path / "observer"))

    async def run() -> tuple[float | None, int]:
        failures: list[BaseException] = []
        rng = random.Random(1)
        node = ServerNode(config, OsFileSystem(), rng=rng, on_failure=failures.append)
        await node.start()
        try:
            async with Client([node.client_address]) as client:
                if has_quorum:
                    await client.set_config(BROKER, "", "log.retention.ms", "1")
                answer = await client.describe_quorum(from_leader=False)
                shown = node._registry.get_sample_value("quorate_raft_high_watermark")
                return shown, answer.high_watermark
        finally:
            await node.stop()
            assert failures == []

    metric, answered = asyncio.run(run())
    if has_quorum:
        assert metric is not None
        assert metric >= answered > 0
    else:
        assert (metric, answered) == (-1, -1)
