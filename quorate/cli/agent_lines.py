"""The lines of a broker's agent: one per command and event, for people or programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from quorate.cli.output import SCHEMA_VERSION, Result, write_lines
from quorate.cli.session import Session

_TOPICS_SHOWN = 5
_PARTITIONS_SHOWN = 10


class AgentLines:
    """Writes documents to standard output as they come, one line each."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def show(self, document: Mapping[str, object]) -> None:
        """Write one document."""
        output = self._session.output
        if output in ("json", "jsonl"):
            head = {"kind": "BrokerAgentEvent", "version": SCHEMA_VERSION}
            write_lines([{**head, **document} if output == "json" else document], sys.stdout)
        elif output == "yaml":
            sys.stdout.write("---\n")
            self._session.show(Result("BrokerAgentEvent", document))
        else:
            sys.stdout.write(line_of(document) + "\n")
        sys.stdout.flush()


def line_of(document: Mapping[str, Any]) -> str:
    """Return a document as a line for people: numbers, words, and topics with partitions."""
    parts = [str(document["event"])]
    for name, value in document.items():
        if name == "topics":
            parts += [_topics(value)]
        elif name == "brokers":
            parts += [] if value is None else ["brokers=" + _brokers(value)]
        elif name != "event" and value is not None and not isinstance(value, list | dict):
            parts.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    return " ".join(part for part in parts if part)


def _topics(topics: list[dict[str, Any]]) -> str:
    shown = [f"{each['name']}:{_partitions(each['partitions'])}" for each in topics[:_TOPICS_SHOWN]]
    more = len(topics) - len(shown)
    return " ".join([*shown, f"and {more} more topics"] if more > 0 else shown)


def _partitions(partitions: list[Any]) -> str:
    shown = [
        f"{each['partition']}(leader={each['leader']})" if isinstance(each, dict) else str(each)
        for each in partitions[:_PARTITIONS_SHOWN]
    ]
    more = len(partitions) - len(shown)
    return ",".join([*shown, f"+{more}"] if more > 0 else shown)


def _brokers(brokers: list[dict[str, Any]]) -> str:
    return ",".join(
        f"{each['broker_id']}{'' if each['is_active'] else '(offline)'}" for each in brokers
    )
