"""Showing a dump: lines for people, or rows for programs, one per batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from quorate.cli.dump import FoundBatch, batch_line, read_batches, record_line
from quorate.cli.exits import CliError, Exit
from quorate.cli.file_kinds import other_kind
from quorate.cli.session import Session
from quorate.visible_text import visible
from quorum.errors import CorruptBatchError
from quorum.log.layout import parse_segment_name
from snapshot.naming import parse_name


def show_file(
    session: Session,
    path: Path,
    *,
    kind: str,
    with_records: bool,
    from_offset: int = 0,
    to_offset: int | None = None,
    show_secrets: bool = False,
) -> None:
    """Dump one file to standard output; offsets [from_offset, to_offset) limit it.

    ``kind`` names the document that JSON and YAML make of it.

    Raises:
        CliError: The file is damaged, and what comes before has been shown; or, by its name, it is
            no file of record batches.
    """
    other = other_kind(path)
    if other:
        raise CliError(
            f"{path}: {other}; it holds no record batches",
            hint="dump the .log and .checkpoint files beside it",
            code=Exit.USAGE,
        )
    wanted = (
        batch
        for batch in read_batches(path)
        if batch.header.end_offset > from_offset
        and (to_offset is None or batch.header.base_offset < to_offset)
    )
    try:
        if session.output == "table":
            _lines(path, wanted, with_records, show_secrets)
        else:
            rows = _rows(wanted, with_records, show_secrets)
            session.stream(kind, {"file": str(path)}, rows)
    except CorruptBatchError as error:
        raise CliError(
            str(error),
            hint="every checksum before this position is right",
            code=Exit.DAMAGED,
        ) from error


def _rows(
    batches: Iterable[FoundBatch],
    with_records: bool,
    show_secrets: bool,
) -> Iterator[Mapping[str, object]]:
    for batch in batches:
        row = batch_line(batch.header)
        if with_records:
            row["records"] = [
                record_line(batch, record, show_secrets=show_secrets) for record in batch.records()
            ]
        yield row


def _lines(
    path: Path,
    batches: Iterable[FoundBatch],
    with_records: bool,
    show_secrets: bool,
) -> None:
    click.echo(visible(f"Dumping {path}"))
    click.echo(_title(path))
    for batch in batches:
        click.echo(_line(batch_line(batch.header)))
        for record in batch.records() if with_records else ():
            click.echo("| " + _line(record_line(batch, record, show_secrets=show_secrets)))


def _title(path: Path) -> str:
    checkpoint = parse_name(path.name)
    if checkpoint is not None:
        snapshot_id = checkpoint[0]
        return f"Snapshot end offset: {snapshot_id.offset}, epoch: {snapshot_id.epoch}"
    base = parse_segment_name(path.name)
    return "Bootstrap records" if base is None else f"Log starting offset: {base}"


def _line(facts: Mapping[str, object]) -> str:
    return visible(
        " ".join(
            f"{name}: {json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value}"
            for name, value in facts.items()
        )
    )
