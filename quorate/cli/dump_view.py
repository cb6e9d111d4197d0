"""Showing a dump: lines for people, or rows for programs, one per batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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

_SUFFIXES = (".log", ".checkpoint")


@dataclass(slots=True)
class OffsetRange:
    """The offsets that are wanted, ``end`` exclusive; what was there is counted."""

    begin: int = 0
    end: int | None = None
    found: int = 0
    """Batches inside."""
    first: int | None = None
    """The first offset of all that were read, inside or not; None: there was no batch."""
    last: int = -1

    def of(self, batches: Iterable[FoundBatch]) -> Iterator[FoundBatch]:
        """Yield those of the batches that have a wanted offset."""
        for batch in batches:
            header = batch.header
            self.first = header.base_offset if self.first is None else self.first
            self.last = header.end_offset - 1
            below_end = self.end is None or header.base_offset < self.end
            if header.end_offset > self.begin and below_end and self.end != self.begin:
                self.found += 1
                yield batch


def show_file(
    session: Session,
    path: Path,
    *,
    kind: str,
    with_records: bool,
    offsets: OffsetRange | None = None,
    show_secrets: bool = False,
) -> None:
    """Dump one file to standard output; ``offsets`` limit it.

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
    wanted = (offsets or OffsetRange()).of(read_batches(path))
    try:
        if session.output == "table":
            _lines(path, wanted, with_records, show_secrets)
        else:
            rows = _rows(wanted, with_records, show_secrets)
            session.stream(kind, {"file": str(path)}, rows)
    except CorruptBatchError as error:
        is_log = error.position > 0 or path.suffix in _SUFFIXES
        raise CliError(
            str(error),
            hint="every checksum before this position is right"
            if is_log
            else "segments end in .log and checkpoints in .checkpoint; is this another file?",
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
