"""One import: ask for its state, verify the source, copy, compare digests, finish.

The cluster is left open for others only after its state digest was found equal to that of a
replay of the source. Until then it refuses the commands of all other clients, also when the
importer or the leader dies; the next run with the same source goes on where that one stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quorate.client import LINEARIZABLE, Client, UnavailableError
from quorate.client.errors import ClientError, RefusedError
from quorate.client.results.admin import DescribeImageResponse
from quorate.importer.copying import InterruptedCopyError, StreamCopy, from_wire, wire_position
from quorate.importer.errors import ImportDiffersError, ImportRefusedError
from quorate.importer.plan import ImportPlan, OnOffset, Step, plan_import
from quorate.importer.source import Source
from quorum.v1.commands_pb2 import ImportBatch
from statemachine.import_state import NO_CHECKPOINT, ImportState, SourcePosition

RETRY_SECONDS = 0.05
"""Pause before a broken stream is replaced by another."""

OnStep = Callable[[int], None]
"""Called with the number of source offsets copied since the last call."""


@dataclass(slots=True)
class ImportReport:
    """The result of an import."""

    source_cluster_id: str
    checkpoint_offset: int
    start: SourcePosition
    """Where this run began to copy."""
    end: SourcePosition
    expected_digest: bytes
    """State digest of a replay of the source."""
    found_digest: bytes = b""
    """State digest of the cluster; empty for a dry run."""
    batches: int = 0
    """Copied by this run."""
    records: int = 0
    dropped_records: int = 0
    """Offsets of the source within transactions that did not take effect."""
    was_finished: bool = False
    """The import was complete before this run."""


class Import:
    """One import of one source into one cluster. Use it once: ``run``.

    Args:
        stall_seconds: Give up when the cluster accepts nothing for this long.
    """

    def __init__(
        self,
        client: Client,
        source: Source,
        *,
        stall_seconds: float,
        on_offset: OnOffset | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        self._client = client
        self._source = source
        self._stall_seconds = stall_seconds
        self._on_offset = on_offset
        self._on_step = on_step
        self._plan: ImportPlan
        self._report: ImportReport
        self._position: SourcePosition

    async def run(self, *, dry_run: bool = False) -> ImportReport:
        """Do it; with ``dry_run`` prove the source and ask whether the cluster would take it.

        Raises:
            ImportRefusedError, StorageError: The source cannot be imported; nothing was written.
            RefusedError: The cluster does not take it.
            ImportDiffersError: Copied, but not equal; the cluster stays closed for others.
            UnavailableError: No leader was found, or it took nothing for too long.
        """
        state = _state_of(await self._describe())
        self._check_source(state)
        # Reading and replaying may block: nothing else runs on this process's loop.
        plan = self._plan = plan_import(self._source, state, on_offset=self._on_offset)
        self._position = plan.start
        self._report = ImportReport(
            self._source.cluster_id,
            plan.checkpoint_offset,
            plan.start,
            plan.end,
            plan.digest,
            dropped_records=sum(end - begin for begin, end in plan.scan.dropped()),
            was_finished=state is not None and state.is_finished,
        )
        if dry_run:
            if state is None:
                await self._stream(lambda: iter([self._empty_step()]), dry_run=True)
            return self._report
        if not self._report.was_finished:
            await self._copy_all(is_begun=state is not None)
        found = (await self._describe()).state_digest
        self._report.found_digest = found
        if found != plan.digest:
            raise ImportDiffersError(plan.digest, found)
        if not self._report.was_finished:
            await self._finish()
        return self._report

    def _check_source(self, state: ImportState | None) -> None:
        source = self._source
        if state is None:
            return
        if state.cluster_id != source.cluster_id:
            raise ImportRefusedError(
                f"the cluster's metadata comes from cluster {state.cluster_id!r}, "
                f"{source.directory} belongs to {source.cluster_id!r}"
            )
        if state.is_finished and state.position.offset != source.end_offset:
            raise ImportRefusedError(
                f"the import of {state.cluster_id!r} ended at {state.position.text()}, and "
                f"{source.directory} now ends at {source.end_offset}: an import ends once"
            )

    async def _describe(self) -> DescribeImageResponse:
        return await self._client.describe_image(read=LINEARIZABLE)

    # ------------------------------------------------------------------ copying

    async def _copy_all(self, *, is_begun: bool) -> None:
        """Copy every step, over as many streams as needed."""
        if not is_begun:
            # Sent alone: the following steps are in order only after this one was accepted.
            await self._stream(lambda: iter([self._empty_step()]))
        await self._stream(lambda: self._plan.steps(self._position))

    async def _finish(self) -> None:
        def last() -> Iterator[Step]:
            yield Step(self._position, self._plan.end, ())

        await self._stream(last, is_last=True)

    def _empty_step(self) -> Step:
        return Step(self._position, self._position, ())

    async def _stream(
        self,
        steps: Callable[[], Iterator[Step]],
        *,
        is_last: bool = False,
        dry_run: bool = False,
    ) -> None:
        loop = asyncio.get_running_loop()
        last_error = "no leader was found"

        def make(step: Step) -> ImportBatch:
            return self._batch(step, is_last=is_last, dry_run=dry_run)

        try:
            async with asyncio.timeout(self._stall_seconds) as stall:

                def on_copied(step: Step) -> None:
                    stall.reschedule(loop.time() + self._stall_seconds)
                    self._copied(step)

                while True:
                    found = await self._client.find_stream()
                    try:
                        await StreamCopy(found.call, make, on_copied).run(steps())
                        return
                    except InterruptedCopyError as error:
                        last_error = str(error) or last_error
                    finally:
                        found.call.cancel()
                    await asyncio.sleep(RETRY_SECONDS)
                    await self._resynchronise()
        except TimeoutError as error:
            raise UnavailableError(
                f"nothing was taken for {self._stall_seconds:g} s: {last_error}"
            ) from error

    async def _resynchronise(self) -> None:
        """Answers were lost: ask the cluster how far it has come."""
        try:
            state = _state_of(await self._describe())
        except RefusedError:
            raise
        except ClientError:
            return
        if state is not None:
            self._check_source(state)
            self._position = state.position

    def _copied(self, step: Step) -> None:
        self._position = step.end
        if step.values:
            self._report.batches += 1
            self._report.records += len(step.values)
        if self._on_step is not None:
            # A checkpoint's records have no log offsets; only its last piece ends at one.
            begin = step.begin.offset if step.begin.is_in_log else 0
            self._on_step(step.end.offset - begin if step.end.is_in_log else 0)

    def _batch(self, step: Step, *, is_last: bool, dry_run: bool) -> ImportBatch:
        batch = ImportBatch(
            source_cluster_id=self._source.cluster_id,
            begin=wire_position(step.begin),
            end=wire_position(step.end),
            records=step.values,
            is_last=is_last,
            dry_run=dry_run,
        )
        if self._plan.checkpoint_offset != NO_CHECKPOINT:
            batch.checkpoint_offset = self._plan.checkpoint_offset
        return batch


def _state_of(described: DescribeImageResponse) -> ImportState | None:
    status = described.import_status
    if status is None:
        return None
    return ImportState(
        status.source_cluster_id,
        status.checkpoint_offset,
        from_wire(status.position.to_message()),
        status.is_finished,
    )
