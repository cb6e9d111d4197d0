"""Standing in for a broker: heartbeats until interrupted, then an orderly shutdown."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from quorate import client as library
from quorate.cli.session import Session
from quorate.client.results.commands import BrokerHeartbeatResult
from quorum.v1.commands_pb2 import BrokerHeartbeat

if TYPE_CHECKING:
    from quorate.client import Client

HEARTBEAT_INTERVAL_S = 2.0
"""Kafka's ``broker.heartbeat.interval.ms``; the session lasts 9 seconds by default."""
SHUTDOWN_BEATS_MAX = 10


async def stand_in(session: Session, client: Client, broker_id: int, broker_epoch: int) -> None:
    """Keep a registered broker's session until this process is interrupted or terminated.

    A cluster that cannot be reached for a while is waited for; a refusal, such as a newer
    registration of the same id, ends it.

    Raises:
        RefusedError: The cluster refused a heartbeat.
    """
    beating = asyncio.create_task(_keep_beating(session, client, broker_id, broker_epoch))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, beating.cancel)
    try:
        await beating
    except asyncio.CancelledError:
        # A second signal ends the process at once.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    for _ in range(SHUTDOWN_BEATS_MAX):
        if await _beat(session, client, broker_id, broker_epoch, want_shut_down=True) is not False:
            break


async def _keep_beating(
    session: Session, client: Client, broker_id: int, broker_epoch: int
) -> None:
    while True:
        await _beat(session, client, broker_id, broker_epoch)
        await asyncio.sleep(HEARTBEAT_INTERVAL_S)


async def _beat(
    session: Session,
    client: Client,
    broker_id: int,
    broker_epoch: int,
    *,
    want_shut_down: bool = False,
) -> bool | None:
    """One heartbeat; whether the broker should stop now, None when no node answered."""
    try:
        position = (await client.describe_cluster()).position
        applied = await client.heartbeat(
            BrokerHeartbeat(
                broker_id=broker_id,
                broker_epoch=broker_epoch,
                metadata_offset=position.offset - 1,
                want_shut_down=want_shut_down,
            )
        )
    except library.RefusedError:
        raise
    except library.ClientError as error:
        session.announce(f"heartbeat lost: {error}")
        return None
    return bool(applied.yielded(BrokerHeartbeatResult).should_shut_down)
