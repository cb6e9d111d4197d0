"""Mistakes in the arguments of the client: refused where they are made, in words."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from quorate.client import TOPIC, BlockingClient, Client

NOWHERE = ["127.0.0.1:1"]


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_that_never_ends_or_has_ended_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"timeout_seconds must be above 0, not {seconds}"):
        BlockingClient(NOWHERE, timeout_seconds=seconds)


def test_a_timeout_of_a_call_is_a_number() -> None:
    async def scenario() -> None:
        async with Client(NOWHERE) as client:
            nan = float("nan")
            for call in (
                lambda: client.set_config(TOPIC, "t", "retention.ms", "1", timeout=nan),
                lambda: client.create_snapshot(timeout_seconds=nan),
                lambda: client.transfer_leadership(timeout_seconds=nan),
            ):
                async with asyncio.timeout(5):
                    with pytest.raises(ValueError, match="a timeout must be a number of seconds"):
                        await cast("Any", call)()

    asyncio.run(scenario())


def test_a_single_text_is_no_list_of_addresses() -> None:
    with pytest.raises(TypeError, match=r"addresses must be a list, as \['127\.0\.0\.1:9190'\]"):
        BlockingClient("127.0.0.1:9190")


def test_a_value_of_a_configuration_is_text() -> None:
    with (
        BlockingClient(NOWHERE) as client,
        pytest.raises(TypeError, match=r"the value of retention\.ms must be text, not int"),
    ):
        client.set_config(TOPIC, "t", "retention.ms", cast("str", 5))
