"""An ordinary client that writes during a campaign; every acknowledged write must be in the log.

It writes one key, without a producer. So the image equals the old one when the key has its old
value again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from grpc import aio

from quorum.v1 import commands_pb2 as wire
from quorum.v1 import metadata_pb2
from tests.campaigns.valid_calls import CONFIG

BASELINE = "1"
PAUSE_SECONDS = 0.02
WRITE_SECONDS = 30.0
PRINCIPAL = "principal"
"""The header of batches that a client requested; the quorum's own batches have none."""


@dataclass
class HonestWriter:
    """The client. It does not own ``channel``, which is connected to the leader."""

    channel: aio.Channel
    written: dict[int, str] = field(default_factory=dict)
    """Value of each acknowledged write, by its end offset."""
    failures: list[str] = field(default_factory=list)
    _number: int = 1000

    async def write(self, value: str) -> None:
        """Write once; the write counts as failed unless it is acknowledged."""
        alter = wire.IncrementalAlterConfigs(resource_type=wire.CONFIG_RESOURCE_TYPE_BROKER)
        alter.alterations.add(name=CONFIG, operation=1, value=value)
        request = metadata_pb2.WriteRequest(
            writer=metadata_pb2.WriterIdentity(client_id="honest"),
            command=wire.Command(tag=1, incremental_alter_configs=alter),
        )
        call = self.channel.unary_unary("/quorum.v1.MetadataService/Write")
        try:
            data = await call(request.SerializeToString(), timeout=WRITE_SECONDS)
        except aio.AioRpcError as error:
            self.failures.append(f"{error.code().name}: {error.details()}")
            return
        answer = metadata_pb2.WriteResponse.FromString(data).answer
        if answer.error_code:
            self.failures.append(f"{answer.error_code}: {answer.message}")
        else:
            self.written[answer.offset] = value

    async def go_on(self, stop: asyncio.Event) -> None:
        """Write until stopped, then restore the old value."""
        while not stop.is_set():
            self._number += 1
            await self.write(str(self._number))
            await asyncio.sleep(PAUSE_SECONDS)
        await self.write(BASELINE)


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of the log, as a watch shows it."""

    headers: frozenset[str]
    text: bytes


async def batches(channel: aio.Channel, begin: int, end: int) -> Mapping[int, Batch]:
    """Return every data batch in [begin, end), by its end offset."""
    found: dict[int, Batch] = {}
    request = metadata_pb2.WatchRequest(from_offset=begin, client_id="campaign")
    watch = channel.unary_stream("/quorum.v1.MetadataService/Watch")
    call = watch(request.SerializeToString(), timeout=60.0)
    position = begin
    while position < end:
        data = await call.read()
        if data is aio.EOF:
            break
        event = metadata_pb2.WatchResponse.FromString(data)
        for each in event.changes.batches:
            position = max(position, each.end_offset)
            if not each.is_control:
                names = frozenset(header.name for header in each.headers)
                found[each.end_offset] = Batch(names, b"".join(each.records))
        if event.HasField("progress"):
            position = max(position, event.progress.offset)
    call.cancel()
    return found


def unexplained(
    log: Mapping[int, Batch],
    honest: Mapping[int, str],
    mutants: frozenset[int],
    *,
    unknown: int,
) -> list[str]:
    """Compare the log with the answers to clients; [] when they agree.

    Args:
        log: Every batch of data since the beginning.
        honest: The answers to the honest client's writes.
        mutants: Ends of batches that mutated writes were acknowledged with.
        unknown: Mutated writes without an answer: each may have written one batch.
    """
    found = []
    for offset, value in honest.items():
        batch = log.get(offset)
        if batch is None or value.encode() not in batch.text:
            found.append(f"the acknowledged write of {value} is not in the log before {offset}")
    asked_for = {offset for offset, batch in log.items() if PRINCIPAL in batch.headers}
    nobodys = sorted(asked_for - honest.keys() - mutants)
    if len(nobodys) > unknown:
        found.append(
            f"{len(nobodys)} batches of clients have no acknowledgement, at most {unknown} can "
            f"be: ends {nobodys[:10]}"
        )
    return found
