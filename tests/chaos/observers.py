"""Clients that read during a run: one reader of the log, and watchers.

Everything they receive must stay in the log.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable

from history.history import Delivery, History, LogBatch, LogGap
from quorate.client.batches import read_batches
from quorate.client.client import Client
from quorate.client.errors import ClientError, LogTruncationError, OffsetOutOfRangeError
from quorate.client.results import ChangeBatch, StateChunk
from quorum.v1 import metadata_pb2
from statemachine.producers import HEADER_ANSWER, is_refusal

PAUSE_SECONDS = 0.05
WAIT_MS = 200
MARK = "request-id"


def digest(records: Iterable[bytes]) -> str:
    """Return the digest of a batch's record values."""
    found = hashlib.blake2b(digest_size=8)
    for record in records:
        found.update(len(record).to_bytes(4))
        found.update(record)
    return found.hexdigest()


class LogReader:
    """Reads every committed batch from offset 0 on with ``FetchLog``."""

    def __init__(self, client: Client, history: History) -> None:
        self._client = client
        self._history = history
        self.offset = 0
        self.records: dict[int, tuple[int, bytes]] = {}
        """Epoch and value by offset, for the comparison with the files of the nodes."""
        self.faults: list[str] = []
        self._epoch = -1

    async def run(self) -> None:
        """Read until cancelled, or until records that were read are missing from the log."""
        while not self.faults:
            try:
                await self._fetch()
            except OffsetOutOfRangeError as error:
                self._fell_out(error)
            except ClientError:
                # No leader is known, or no node can be reached.
                await asyncio.sleep(PAUSE_SECONDS)

    def _fell_out(self, error: OffsetOutOfRangeError) -> None:
        """Count the gap if a trim has overtaken the reader. Other missing records are a problem."""
        start = error.bounds.earliest_offset if error.bounds is not None else -1
        if isinstance(error, LogTruncationError) or start <= self.offset:
            self.faults.append(f"records that were read as committed are missing: {error}")
            return
        self._history.gaps.append(LogGap(self.offset, start))
        self.offset, self._epoch = start, -1

    async def _fetch(self) -> None:
        request = metadata_pb2.FetchLogRequest(offset=self.offset, max_wait_ms=WAIT_MS)
        if self._epoch >= 0:
            request.last_fetched_epoch = self._epoch
        answer = await self._client.fetch_log(request)
        if answer.diverging is not None:
            self.faults.append(
                f"the log diverges from the records that were read: {answer.diverging}"
            )
            return
        for batch in read_batches(answer.records):
            records = batch.records()
            if batch.end_offset <= self.offset:
                continue
            headers = [each for record in records for each in record.headers]
            marks = [(value or b"").decode() for name, value in headers if name == MARK]
            if any(name == HEADER_ANSWER and is_refusal(value) for name, value in headers):
                # The batch of a refused command only stores its sequence number.
                marks = []
            values = [record.value or b"" for record in records]
            self._history.log.append(
                LogBatch(
                    batch.base_offset,
                    batch.end_offset,
                    batch.leader_epoch,
                    digest(values),
                    tuple(marks),
                )
            )
            for record in records:
                self.records[record.offset] = (record.leader_epoch, record.value or b"")
            self.offset, self._epoch = batch.end_offset, batch.leader_epoch


class Watcher:
    """One watch that continues over broken streams."""

    def __init__(self, client: Client, history: History, name: str) -> None:
        self._watch = client.watch()
        self._history = history
        self._name = name
        self.faults: list[str] = []

    @property
    def offset(self) -> int:
        return self._watch.offset

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            async for event in self._watch:
                self._take(event)
        except ClientError as error:
            self.faults.append(f"{self._name}: the watch ended: {error}")

    def _take(self, event: StateChunk | ChangeBatch) -> None:
        if isinstance(event, StateChunk):
            if event.is_last:
                delivery = Delivery(self._name, "state", event.offset, epoch=event.epoch)
                self._history.deliveries.append(delivery)
            return
        self._history.deliveries.append(
            Delivery(
                self._name,
                "batch",
                event.end_offset,
                event.base_offset,
                event.epoch,
                digest(event.records),
            )
        )
