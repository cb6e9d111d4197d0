"""A million partitions: loaded in one go, paged and searched by the index."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from quorate.client.results.metadata import StateChunk
from quorate.console.alerts import AlertStates
from quorate.console.image_feed import ImageFeed
from quorate.console.index import Index
from quorate.console.views import VIEWS, Sources
from statemachine.codec import encode_record
from statemachine.records import PartitionRecord, RegisterBrokerRecord, TopicRecord

TOPICS, PARTITIONS, BROKERS = 10_000, 100, 120
ANSWER_SECONDS_MAX = 2.0
"""Loose: 0.3 s on a quiet machine."""


class Follower:
    """What views read of a follower, without a cluster."""

    quorum = None
    features = None

    def __init__(self, feed: ImageFeed) -> None:
        self.feed = feed
        self.problems: dict[str, str] = {}


def chunks(topics: int, partitions: int) -> Iterator[StateChunk]:
    values = [
        encode_record(RegisterBrokerRecord(broker_id=number, broker_epoch=number))
        for number in range(1, BROKERS + 1)
    ]
    for number in range(topics):
        topic_id = number.to_bytes(16, "big")
        values.append(encode_record(TopicRecord(f"topic-{number:05}", topic_id)))
        for index in range(partitions):
            first = (number + index) % BROKERS
            replicas = tuple((first + each) % BROKERS + 1 for each in range(3))
            isr = replicas[:2] if (number * partitions + index) % 1000 == 0 else replicas
            values.append(
                encode_record(
                    PartitionRecord(
                        index, topic_id, replicas, isr, (), (), replicas[0], 0, 5, 7, ()
                    )
                )
            )
        if len(values) > 20_000:
            yield StateChunk(offset=5_000_000, epoch=4, chunk=number, records=values)
            values = []
    yield StateChunk(offset=5_000_000, epoch=4, chunk=topics, is_last=True, records=values)


def measured(folder: Path, topics: int, partitions: int) -> dict[str, float]:
    """Seconds of processor time of the load and of each answer."""
    index = Index(folder)
    feed = ImageFeed(index)
    began = time.process_time()
    for each in chunks(topics, partitions):
        feed.take([StateChunk.of(each.to_message())])
    seconds = {"load": time.process_time() - began}
    sources = Sources(cast("Any", Follower(feed)), index, AlertStates())
    for view, query in (
        ("overview", {}),
        ("topics", {}),
        ("topics", {"q": "09"}),
        ("topic", {"name": "topic-00042"}),
        ("partitions", {}),
        ("partitions", {"page": str(topics * partitions // 100)}),
        ("partitions", {"q": "topic-00", "page": "2"}),
        ("partitions", {"problems": "1", "page": "0"}),
        ("search", {"q": "042"}),
        ("brokers", {}),
        ("brokers", {"page": "0"}),
        ("brokers", {"q": "120", "page": "1"}),
        ("history", {}),
        ("diff", {}),
    ):
        began = time.process_time()
        document = VIEWS[view](sources, query)
        seconds[f"{view} {query}"] = time.process_time() - began
        if view == "brokers":
            wanted = 50 if "q" not in query else 0
            assert len(document["rows"]) == wanted, query
        if view == "partitions" and "problems" not in query:
            assert len(document["rows"]) == 50, (view, query)
    index.close()
    return seconds


def test_every_page_of_a_large_cluster_is_short(tmp_path: Path) -> None:
    assert len(measured(tmp_path, 60, 100)) == 15


@pytest.mark.long
@pytest.mark.alone
def test_a_million_partitions_are_paged_and_searched(tmp_path: Path) -> None:
    seconds = measured(tmp_path, TOPICS, PARTITIONS)
    answers = {name: each for name, each in seconds.items() if name != "load"}
    assert {name: each for name, each in answers.items() if each > ANSWER_SECONDS_MAX} == {}


if __name__ == "__main__":
    import resource
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name, each in measured(Path(folder), TOPICS, PARTITIONS).items():
            print(f"{each:8.3f} s  {name}")  # noqa: T201
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "MiB")  # noqa: T201
