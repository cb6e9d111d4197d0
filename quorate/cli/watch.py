"""``quorate watch``: the changes of the metadata, as they are committed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from quorate import client as library
from quorate.cli.cells import named_text
from quorate.cli.command import SessionCommand, pass_session
from quorate.cli.connection import ask
from quorate.cli.exits import CliError, Exit
from quorate.cli.output import write_lines
from quorate.cli.ranges import WholeNumber
from quorate.cli.session import Session
from quorate.principal_text import principal_text
from quorate.visible_text import visible
from quorum.types import uuid_to_text

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from quorate.client import Client
    from quorate.client.results.metadata import ChangeBatch
    from quorate.client.results.records import TypedRecord

_WHO = ("principal", "client-id", "request-id", "reason", "traceparent")
_UUID_BYTES = 16


@click.command(cls=SessionCommand)
@click.option(
    "--from-offset",
    type=WholeNumber(min=0),
    help="Begin there instead of now.",
)
@click.option(
    "--count", type=WholeNumber(min=1), help="End after so many changes; else go on for ever."
)
@click.option("--all", "with_all", is_flag=True, help="Also NoOpRecords and control batches.")
@pass_session
def watch(session: Session, from_offset: int | None, count: int | None, with_all: bool) -> None:
    """Show each change of the metadata as it is committed: what, by whom and why.

    One change is what one command wrote. Survives changes of leader and broken connections, and
    ends if no node serves it for --timeout. With -o jsonl each is an object on a line of its own.
    """
    if session.output in ("json", "yaml"):
        raise CliError("watch has no end, so no document; use -o jsonl", code=Exit.USAGE)

    async def work(client: Client) -> None:
        try:
            await _watch(session, client, from_offset, count, with_all=with_all)
        except (library.OffsetOutOfRangeError, library.LogTruncationError) as error:
            raise CliError(
                str(error), hint="leave --from-offset out to begin now", code=Exit.NOT_FOUND
            ) from error

    ask(session, work, is_bounded=False)


async def _watch(
    session: Session,
    client: Client,
    from_offset: int | None,
    count: int | None,
    *,
    with_all: bool,
) -> None:
    from quorate.client.results.metadata import StateChunk

    start = from_offset
    if start is None:
        start = max(0, (await client.describe_quorum(from_leader=False)).high_watermark)
    session.announce(f"watching from offset {start}; interrupt to end")
    events = aiter(
        client.watch(
            from_offset=start,
            may_restart=False,
            outage_seconds_max=session.timeout_s,
            typed=True,
        )
    )
    left = count
    try:
        async for batch in events:
            # A watch from an offset on brings no state.
            if isinstance(batch, StateChunk) or not (with_all or is_change(batch)):
                continue
            show(session, batch)
            left = None if left is None else left - 1
            if left == 0:
                return
    finally:
        await events.aclose()


def is_change(batch: ChangeBatch) -> bool:
    """Whether a batch changes the metadata; a NoOpRecord, which an idle leader writes, does not."""
    changes = (each.no_op_record is None for each in batch.typed_records)
    return not batch.is_control and (not batch.typed_records or any(changes))


def show(session: Session, batch: ChangeBatch) -> None:
    """Write one change at once, as a line for programs or as some for people."""
    row = change_row(batch)
    if session.output == "jsonl":
        write_lines([row], sys.stdout)
    else:
        for line in change_lines(row):
            click.echo(line)
    sys.stdout.flush()


def change_row(batch: ChangeBatch) -> dict[str, Any]:
    """Return a change with its place, time, who and why, and its records by type."""
    headers = {each.name: each.value.decode("utf-8", "replace") for each in batch.headers}
    return {
        "base_offset": batch.base_offset,
        "end_offset": batch.end_offset,
        "epoch": batch.epoch,
        "timestamp_ms": batch.timestamp_ms,
        **{name.replace("-", "_"): headers[name] for name in _WHO if name in headers},
        "is_control": batch.is_control,
        "records": [record_row(each) for each in batch.typed_records],
    }


def record_row(record: TypedRecord) -> dict[str, Any]:
    """Return a record's type and its fields that have another value than their default.

    Ids are text, an unknown record is hexadecimal.
    """
    message = record.to_message()
    kind = message.WhichOneof("record")
    if kind is None:
        return {"type": "unknown", "undecoded": record.undecoded.hex()}
    return {"type": kind.removesuffix("_record"), **_fields(getattr(message, kind))}


def _fields(message: Message) -> dict[str, Any]:
    return {field.name: _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return uuid_to_text(value) if len(value) == _UUID_BYTES else value.hex()
    if isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "ListFields"):
        return _fields(value)
    return [_value(each) for each in value]


def change_lines(row: dict[str, Any]) -> Iterable[str]:
    """Return a change as people read it: who and why, then a line for each record."""
    moment = datetime.fromtimestamp(row["timestamp_ms"] / 1000, UTC)
    who = principal_text(row.get("principal") or "") or row.get("client_id") or "-"
    why = f": {row['reason']}" if row.get("reason") else ""
    time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    kind = "  control" if row["is_control"] else ""
    yield f"{row['base_offset']}  {time}  {visible(str(who))}{visible(why)}{kind}"
    for record in row["records"]:
        parts = [
            f"{key}={named_text(key, value)}" for key, value in record.items() if key != "type"
        ]
        yield "    " + " ".join([record["type"], *parts])
