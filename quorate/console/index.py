"""What pages search: the newest image and its changes, in a private SQLite file.

One thread writes. Any thread reads through ``reader``, and sees the state of one commit. The file
is a cache: it is made anew at each start. Ids are text, times are milliseconds
since 1970, offsets of ranges are half-open.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import local
from typing import Final

from quorate.console.change_rows import ChangeRow
from quorate.console.terms import Term
from quorate.timetravel.entities import entities
from quorum.types import Uuid, uuid_to_text
from statemachine.image import MetadataImage
from statemachine.sections.partitions import PartitionState

CHANGES_MAX: Final = 1_000_000
"""Most changes kept; the oldest go first."""
_TRIM_AT: Final = 10_000
QUORUM_KIND: Final = "quorum"
"""Kind of the changes of the voters, which no record of an image describes."""
LOADED_KINDS: Final = frozenset(
    ("config", "quota", "acl", "scram", "token", "feature", "controller", "transactional-id")
)
"""Kinds in the table ``entity``; topics, partitions and brokers have pages of their own."""
SEARCHED_KINDS: Final = ("topic", *sorted(LOADED_KINDS))
KINDS_OF_HISTORY: Final = ("topic", "partition", "broker", QUORUM_KIND, *sorted(LOADED_KINDS))

NO_LEADER, ONE_COPY, UNDER_REPLICATED, HEALTHY = 3, 2, 1, 0
"""Values of ``partition.problem``, the worst first."""

_SCHEMA = """
CREATE TABLE topic (
    name TEXT PRIMARY KEY, id TEXT NOT NULL, partitions INTEGER NOT NULL,
    offline INTEGER NOT NULL, under INTEGER NOT NULL, problem INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX topic_problem ON topic (problem DESC, name);
CREATE TABLE partition (
    topic TEXT NOT NULL, number INTEGER NOT NULL, problem INTEGER NOT NULL,
    leader INTEGER NOT NULL, leader_epoch INTEGER NOT NULL, partition_epoch INTEGER NOT NULL,
    replicas TEXT NOT NULL, isr TEXT NOT NULL, elr TEXT NOT NULL, moving TEXT NOT NULL,
    PRIMARY KEY (topic, number)
) WITHOUT ROWID;
CREATE INDEX partition_problem ON partition (problem DESC, topic, number) WHERE problem > 0;
CREATE INDEX partition_topic_problem ON partition (topic, problem) WHERE problem > 0;
CREATE TABLE entity (
    kind TEXT NOT NULL, name TEXT NOT NULL, fields TEXT NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE change (
    id INTEGER PRIMARY KEY, start INTEGER NOT NULL, until INTEGER NOT NULL, epoch INTEGER NOT NULL,
    time INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
    derived INTEGER NOT NULL, principal TEXT, client_id TEXT, request_id TEXT, reason TEXT,
    before TEXT, after TEXT
);
CREATE INDEX change_entity ON change (kind, name, id);
CREATE INDEX change_name ON change (name, id);
CREATE INDEX change_start ON change (start);
CREATE INDEX change_principal ON change (principal, id);
CREATE TABLE term (
    epoch INTEGER PRIMARY KEY, start INTEGER NOT NULL, time INTEGER NOT NULL, leader INTEGER,
    principal TEXT, reason TEXT
) WITHOUT ROWID;
"""
_TABLES = ("topic", "partition", "entity", "change")


def problem_of(state: PartitionState) -> int:
    """Return the worst that is wrong with a partition."""
    if state.leader < 0:
        return NO_LEADER
    if len(state.isr) >= len(state.replicas):
        return HEALTHY
    return ONE_COPY if len(state.isr) <= 1 else UNDER_REPLICATED


def _ids(values: Iterable[int]) -> str:
    return " ".join(map(str, values))


def _partition_row(topic: str, number: int, state: PartitionState) -> tuple[object, ...]:
    return (
        topic,
        number,
        problem_of(state),
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        _ids(state.replicas),
        _ids(state.isr),
        _ids(state.elr),
        _ids((*state.adding, *state.removing)),
    )


_PUT_PARTITION = "INSERT OR REPLACE INTO partition VALUES (?,?,?,?,?,?,?,?,?,?)"
_PUT_ENTITY = "INSERT OR REPLACE INTO entity VALUES (?,?,?)"


class Index:
    """The tables, with their only writer, which one thread at a time uses."""

    def __init__(self, folder: Path, *, changes_max: int = CHANGES_MAX) -> None:
        self._path = folder / "console.sqlite"
        self._changes_max = changes_max
        self._untrimmed = 0
        self._readers = local()
        self._open: list[sqlite3.Connection] = []
        self._db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        """Close all connections; nobody may be reading any more."""
        for each in (*self._open, self._db):
            each.close()

    def reader(self) -> sqlite3.Connection:
        """Return this thread's read-only connection."""
        found: sqlite3.Connection | None = getattr(self._readers, "db", None)
        if found is None:
            found = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, check_same_thread=False)
            found.row_factory = sqlite3.Row
            self._readers.db = found
            self._open.append(found)
        return found

    def begin(self) -> None:
        """Begin a transaction; ``commit`` makes it visible to readers."""
        self._db.execute("BEGIN")

    def commit(self) -> None:
        """Make everything since ``begin`` visible at once."""
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Drop everything since ``begin``, if anything was begun."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def load(self, image: MetadataImage) -> None:
        """Replace everything by ``image``; no change is known then."""
        db = self._db
        for table in _TABLES:
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant
        db.executemany(_PUT_PARTITION, _partition_rows(image))
        db.executemany(
            "INSERT INTO topic VALUES (?,?,?,0,0,0)",
            (
                (name, uuid_to_text(topic_id), len(image.topics.partitions_of(topic_id)))
                for name, topic_id in image.topics.ids.items()
            ),
        )
        self._count(
            row[0] for row in db.execute("SELECT DISTINCT topic FROM partition WHERE problem > 0")
        )
        if not _is_large(image):
            shown = entities(image)
        else:
            shown = entities(_without_topics(image))
        db.executemany(
            _PUT_ENTITY,
            (
                (each.kind, each.name, json.dumps(each.fields()))
                for each in shown
                if each.kind in LOADED_KINDS
            ),
        )

    def put_topics(self, image: MetadataImage, names: Iterable[tuple[str, Uuid]]) -> None:
        """Store these topics as ``image`` has them, or remove them with their partitions."""
        counted = []
        for name, topic_id in names:
            if image.topics.id_of(name) != topic_id:
                if image.topics.id_of(name) is None:
                    self._db.execute("DELETE FROM topic WHERE name = ?", (name,))
                    self._db.execute("DELETE FROM partition WHERE topic = ?", (name,))
                continue
            self._db.execute(
                "INSERT OR REPLACE INTO topic VALUES (?,?,?,0,0,0)",
                (name, uuid_to_text(topic_id), len(image.topics.partitions_of(topic_id))),
            )
            counted.append(name)
        self._count(counted)

    def put_partitions(self, rows: Iterable[tuple[str, int, PartitionState | None]]) -> None:
        """Store partitions by topic and number; None removes one."""
        for topic, number, state in rows:
            if state is None:
                self._db.execute(
                    "DELETE FROM partition WHERE topic = ? AND number = ?", (topic, number)
                )
            else:
                self._db.execute(_PUT_PARTITION, _partition_row(topic, number, state))

    def put_entity(self, kind: str, name: str, fields: dict[str, object] | None) -> None:
        """Store an entity of one of ``LOADED_KINDS``; None removes it."""
        if fields is None:
            self._db.execute("DELETE FROM entity WHERE kind = ? AND name = ?", (kind, name))
        else:
            self._db.execute(_PUT_ENTITY, (kind, name, json.dumps(fields)))

    def add_changes(self, rows: list[ChangeRow]) -> None:
        """Append changes in the order of the log; beyond the limit the oldest are dropped."""
        self._db.executemany(
            f"INSERT INTO change VALUES (NULL{',?' * len(ChangeRow._fields)})",  # noqa: S608
            rows,
        )
        self._untrimmed += len(rows)
        if self._untrimmed >= min(_TRIM_AT, self._changes_max):
            self._untrimmed = 0
            self._db.execute(
                "DELETE FROM change WHERE id <= (SELECT max(id) FROM change) - ?",
                (self._changes_max,),
            )

    def put_term(self, term: Term) -> None:
        """Store where an epoch begins in the log, with its leader if that is known, and why."""
        self._db.execute("INSERT OR REPLACE INTO term VALUES (?,?,?,?,?,?)", term)

    def _count(self, topics: Iterable[str]) -> None:
        """Count the problems of topics; they decide their order."""
        self._db.executemany(
            """UPDATE topic SET
                offline = (SELECT count(*) FROM partition AS p
                           WHERE p.topic = ?1 AND p.problem > 0 AND p.problem = 3),
                under = (SELECT count(*) FROM partition AS p
                         WHERE p.topic = ?1 AND p.problem > 0),
                problem = (SELECT coalesce(max(p.problem), 0) FROM partition AS p
                           WHERE p.topic = ?1 AND p.problem > 0)
            WHERE name = ?1""",
            [(name,) for name in topics],
        )


def _partition_rows(image: MetadataImage) -> Iterator[tuple[object, ...]]:
    for name in sorted(image.topics.ids):
        states = image.topics.partitions_of(image.topics.ids[name])
        for number in sorted(states):
            yield _partition_row(name, number, states[number])


_LARGE: Final = 10_000


def _is_large(image: MetadataImage) -> bool:
    return len(image.topics.ids) > _LARGE or image.topics.partition_count > _LARGE


def _without_topics(image: MetadataImage) -> MetadataImage:
    """The same without topics, whose records need not be made again to find the others."""
    return MetadataImage(
        image.provenance,
        image.features,
        image.cluster,
        type(image.topics)(),
        image.configs,
        image.security,
        image.producers,
    )
