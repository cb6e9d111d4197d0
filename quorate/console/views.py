"""The views: each makes one document from what is known, which the page and the JSON both show."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from quorate.console.alerts import AlertStates, alerts_document, own_findings
from quorate.console.broker_counts import BrokerCounts
from quorate.console.comparison import diff_document
from quorate.console.feature_rows import feature_rows
from quorate.console.follower import ANSWER_SECONDS_MAX, Follower
from quorate.console.index import KINDS_OF_HISTORY, SEARCHED_KINDS, Index
from quorate.console.leadership import leadership_document
from quorate.console.paging import (
    PAGE_ROWS,
    NotFoundError,
    like,
    number_of,
    select_page,
    text_of,
)
from quorate.console.quorum_document import quorum_document
from statemachine.dump import count_records
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.sections.cluster import BrokerRegistration

Query: TypeAlias = Mapping[str, str]
Document: TypeAlias = dict[str, Any]

_PROBLEMS: Final = {3: "no leader", 2: "one copy in sync", 1: "under-replicated", 0: ""}
_CHANGES: Final = (
    "SELECT start, until, epoch, time, kind, name, type, derived, principal, client_id, "
    "request_id, reason, before, after FROM change"
)
_TOPICS: Final = "SELECT * FROM topic"
_ENTITIES: Final = (
    "SELECT kind, name, fields FROM (SELECT kind, name, fields FROM entity UNION ALL "
    "SELECT 'topic', name, '{}' FROM topic)"
)


@dataclass(frozen=True, slots=True)
class Sources:
    """What views read. All of it is kept up to date elsewhere; a view asks no node."""

    follower: Follower
    index: Index
    alerts: AlertStates
    counts: BrokerCounts = field(default_factory=BrokerCounts)
    clock: Callable[[], float] = time.monotonic

    @property
    def image(self) -> MetadataImage:
        """The newest image; the empty one until there is one."""
        return self.follower.feed.image or EMPTY_IMAGE

    def quorum(self) -> Document:
        """The quorum's document, as of the last answer."""
        answer = self.follower.quorum
        if answer is None:
            return quorum_document(None, 0)
        return quorum_document(answer.quorum, self.clock() - answer.at)

    def unanswered_since_ms(self) -> int:
        """When a node last answered, if none answers now: by that node's clock. Else -1."""
        answer = self.follower.quorum
        if answer is None or self.clock() - answer.at <= ANSWER_SECONDS_MAX:
            return -1
        return answer.quorum.timestamp_ms

    def position(self) -> Document:
        """Which state all views show, and what could not be read."""
        feed = self.follower.feed
        return {
            "offset": -1 if feed.image is None else feed.image.provenance.end_offset,
            "is_loading": feed.image is None,
            "loading_records": feed.loading_records,
            "changes_known_from": feed.known_from,
            "unanswered_since_ms": self.unanswered_since_ms(),
            "problems": dict(self.follower.problems),
        }


def overview(sources: Sources, query: Query) -> Document:
    """Everything that needs somebody, on one page."""
    del query
    db = sources.index.reader()
    quorum = sources.quorum()
    counts = db.execute("SELECT problem, count(*) FROM partition WHERE problem > 0 GROUP BY 1")
    problems = {_PROBLEMS[row[0]]: row[1] for row in counts}
    image = sources.image
    fenced = [each.id for each in image.brokers.values() if each.fenced]
    worst = select_page(db, _PARTITIONS + " WHERE problem > 0" + _WORST_FIRST, (), 0, rows=8)
    recent = select_page(db, _CHANGES + " ORDER BY id DESC", (), 0, rows=8)
    alerts = alerts_document(sources.alerts, _findings(sources, quorum))
    return {
        "quorum": quorum,
        "topics": len(image.topics.ids),
        "partitions": image.topics.partition_count,
        "brokers": len(image.brokers),
        "fenced_brokers": sorted(fenced),
        "records": count_records(image),
        "problems": problems,
        "worst_partitions": [_partition(each) for each in worst.rows],
        "recent_changes": [_change(each) for each in recent.rows],
        "firing": [each for each in alerts["rows"] if each["state"] == "firing"],
        "knows_alerts": any(each["state"] != "unknown" for each in alerts["rows"]),
    }


def quorum(sources: Sources, query: Query) -> Document:
    """Voters, observers, relays."""
    del query
    return sources.quorum()


def leadership(sources: Sources, query: Query) -> Document:
    """Leadership terms, the newest first."""
    page = number_of(query, "page", 0)
    found = select_page(
        sources.index.reader(),
        "SELECT epoch, start, time, leader, principal, reason, "
        "lead(time) OVER (ORDER BY epoch) AS until FROM term ORDER BY epoch DESC",
        (),
        page,
    )
    return {
        **found.fields(),
        **leadership_document(
            found.rows,
            sources.follower.quorum,
            sources.image.provenance,
            is_newest_page=page == 0,
        ),
    }


_PARTITIONS: Final = "SELECT * FROM partition"
_WORST_FIRST: Final = " ORDER BY problem DESC, topic, number"


def topics(sources: Sources, query: Query) -> Document:
    """Topics whose name contains ``q``, those with problems first."""
    text = text_of(query, "q")
    where, values = (" WHERE name LIKE ? ESCAPE '\\'", (like(text),)) if text else ("", ())
    found = select_page(
        sources.index.reader(),
        _TOPICS + where + " ORDER BY problem DESC, name",
        values,
        number_of(query, "page", 0),
    )
    return {"q": text, **found.fields()}


def topic(sources: Sources, query: Query) -> Document:
    """One topic: its partitions, worst first, and its configuration."""
    name, db = text_of(query, "name"), sources.index.reader()
    row = db.execute("SELECT * FROM topic WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise NotFoundError(f"no topic {name!r}")
    found = select_page(
        db,
        _PARTITIONS + " WHERE topic = ? ORDER BY problem DESC, number",
        (name,),
        number_of(query, "page", 0),
    )
    configs = db.execute(
        "SELECT fields FROM entity WHERE kind = 'config' AND name LIKE ? ESCAPE '\\' LIMIT 200",
        (like(f"topic:{name}/")[1:],),
    )
    rows = [_partition(each) for each in found.rows]
    return {
        **dict(row),
        "configs": [json.loads(each[0]) for each in configs],
        **found.fields(),
        "rows": rows,
    }


def partitions(sources: Sources, query: Query) -> Document:
    """Partitions of topics whose name contains ``q``, those with problems first."""
    text, only = text_of(query, "q"), text_of(query, "problems")
    conditions: list[str] = ["problem > 0"] if only else []
    values: list[object] = []
    if text:
        conditions.append(
            "topic IN (SELECT name FROM topic WHERE name LIKE ? ESCAPE '\\' LIMIT 1000)"
        )
        values.append(like(text))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if not where:
        # Two scans of an index each, in place of sorting a million rows.
        sql = (
            "SELECT * FROM (SELECT * FROM partition WHERE problem > 0 "
            "ORDER BY problem DESC, topic, number) UNION ALL "
            "SELECT * FROM (SELECT * FROM partition WHERE problem = 0 ORDER BY topic, number)"
        )
    else:
        sql = _PARTITIONS + where + _WORST_FIRST
    found = select_page(sources.index.reader(), sql, values, number_of(query, "page", 0))
    rows = [_partition(each) for each in found.rows]
    return {"q": text, "problems": only, **found.fields(), "rows": rows}


def brokers(sources: Sources, query: Query) -> Document:
    """Brokers, fenced ones first."""
    text = text_of(query, "q")
    image = sources.image
    found = [each for each in image.brokers.values() if not text or text in _words(each)]
    found.sort(key=lambda each: (not each.fenced, not each.in_controlled_shutdown, each.id))
    page = number_of(query, "page", 0)
    start = page * PAGE_ROWS
    # Counted for those shown only.
    sources.counts.forget_others(image)
    rows = [_broker(sources, image, each) for each in found[start : start + PAGE_ROWS]]
    return {"q": text, "page": page, "has_more": len(found) > start + PAGE_ROWS, "rows": rows}


def history(sources: Sources, query: Query) -> Document:
    """Changes with who, when and why, newest first; of one entity, or of all.

    Raises:
        NotFoundError: There is no history of that kind.
    """
    kind, name = _kind_of(query, KINDS_OF_HISTORY), text_of(query, "name")
    principal = text_of(query, "principal")
    conditions = [
        f"{column} = ?" for column, value in _given(kind=kind, name=name, principal=principal)
    ]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    found = select_page(
        sources.index.reader(),
        _CHANGES + where + " ORDER BY id DESC",
        [value for _, value in _given(kind=kind, name=name, principal=principal)],
        number_of(query, "page", 0),
    )
    return {
        "kind": kind,
        "name": name,
        "principal": principal,
        **found.fields(),
        "rows": [_change(each) for each in found.rows],
    }


def diff(sources: Sources, query: Query) -> Document:
    """What differs between two offsets or times."""
    feed = sources.follower.feed
    return diff_document(
        sources.index.reader(),
        text_of(query, "from"),
        text_of(query, "to"),
        number_of(query, "page", 0),
        known_from=feed.known_from,
        end=-1 if feed.image is None else feed.image.provenance.end_offset,
    )


def search(sources: Sources, query: Query) -> Document:
    """Entities of any kind whose name contains ``q``.

    Raises:
        NotFoundError: No entities of that kind are searched.
    """
    text, kind = text_of(query, "q"), _kind_of(query, SEARCHED_KINDS)
    where, values = " WHERE name LIKE ? ESCAPE '\\'", [like(text)]
    if kind:
        where, values = where + " AND kind = ?", [*values, kind]
    found = select_page(
        sources.index.reader(),
        _ENTITIES + where,
        values,
        number_of(query, "page", 0),
    )
    rows = [{**each, "fields": json.loads(each["fields"])} for each in found.rows]
    return {"q": text, "kind": kind, **found.fields(), "rows": rows}


def alerts(sources: Sources, query: Query) -> Document:
    """Every alert rule, its state as far as known, and what to do."""
    del query
    return alerts_document(sources.alerts, _findings(sources, sources.quorum()))


def features(sources: Sources, query: Query) -> Document:
    """Feature levels, and who keeps each from the highest one."""
    del query
    return {"rows": feature_rows(sources.image, sources.follower.features)}


def _kind_of(query: Query, kinds: Sequence[str]) -> str:
    """Return the kind that is asked for; empty if any is.

    Raises:
        NotFoundError: It is none of ``kinds``, which the message names.
    """
    kind = text_of(query, "kind")
    if kind and kind not in kinds:
        raise NotFoundError(f"no kind {kind!r} here; there are {', '.join(kinds)}")
    return kind


def _given(**values: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in values.items() if value]


def _partition(row: Mapping[str, Any]) -> Document:
    lists = ("replicas", "isr", "elr", "moving")
    numbers = {name: [int(each) for each in row[name].split()] for name in lists}
    return {**row, **numbers, "problem": _PROBLEMS[row["problem"]]}


def _change(row: Mapping[str, Any]) -> Document:
    before, after = (
        json.loads(row[name]) if row[name] is not None else None for name in ("before", "after")
    )
    names = {**(before or {}), **(after or {})}
    fields = {
        name: {"before": (before or {}).get(name), "after": (after or {}).get(name)}
        for name in names
        if (before or {}).get(name) != (after or {}).get(name)
    }
    change = "added" if before is None else "removed" if after is None else "changed"
    kept = {name: value for name, value in row.items() if name not in ("before", "after")}
    return {**kept, "derived": bool(row["derived"]), "change": change, "fields": fields}


def _words(broker: BrokerRegistration) -> str:
    return f"{broker.id} {broker.rack or ''} {_listeners(broker)}"


def _listeners(broker: BrokerRegistration) -> str:
    return " ".join(f"{each.name}://{each.host}:{each.port}" for each in broker.endpoints)


def _broker(sources: Sources, image: MetadataImage, broker: BrokerRegistration) -> Document:
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "is_fenced": broker.fenced,
        "is_shutting_down": broker.in_controlled_shutdown,
        "rack": broker.rack or "",
        "listeners": _listeners(broker),
        "leads": sources.counts.led(image, broker.id),
        "in_sync": sources.counts.in_sync(image, broker.id),
    }


def _findings(sources: Sources, quorum: Document) -> dict[str, str]:
    row = sources.index.reader().execute(
        "SELECT count(*) FROM partition WHERE problem > 0 AND problem = 3"
    )
    return own_findings(quorum, row.fetchone()[0])


VIEWS: Final[dict[str, Callable[[Sources, Query], Document]]] = {
    "overview": overview,
    "quorum": quorum,
    "leadership": leadership,
    "topics": topics,
    "topic": topic,
    "partitions": partitions,
    "brokers": brokers,
    "history": history,
    "diff": diff,
    "search": search,
    "alerts": alerts,
    "features": features,
}
"""By the path of the page, ``/`` for the overview; the JSON is at ``/api/`` and the name."""
