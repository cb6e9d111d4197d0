"""Cheap attacks on a leader do not affect other clients.

The short form checks counters; the nightly one lasts a minute and checks latencies as well. The
size limit of a compressed batch is tested in ``tests/unit/quorum/test_compression.py``, because no
stranger can send a batch to a node over its ports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from quorate.client.client import Client
from quorate.demo.workload import Workload
from tests.integration.attack_campaign import ATTACKS, BY_NAME, Attack, run_attack
from tests.integration.processes import Processes, running

pytestmark = [pytest.mark.integration, pytest.mark.alone]

SHORT_SECONDS = 8.0
NIGHTLY_SECONDS = 60.0
LARGE_TOPICS, LARGE_PARTITIONS = 60, 1_000
SESSION_MS = 600_000
ROWS = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("home")) as cluster:
        yield cluster


@pytest.mark.long
@ROWS
def test_a_short_attack_is_not_noticed(cluster: Processes, attack: Attack) -> None:
    found = run_attack(cluster, attack, calm_seconds=1.0, seconds=SHORT_SECONDS)
    assert found.problems(attack, SHORT_SECONDS, evaluates_time=False) == [], found.line(attack)


def evaluate_a_minute(
    cluster: Processes,
    attack: Attack,
    name: str,
    record_property: Callable[[str, object], None],
) -> None:
    found = run_attack(cluster, attack, calm_seconds=10.0, seconds=NIGHTLY_SECONDS)
    record_property(name, found.figures())
    print(found.line(attack))
    assert found.problems(attack, NIGHTLY_SECONDS, evaluates_time=True) == [], found.line(attack)


@pytest.mark.nightly
@ROWS
def test_a_minute_of_it_is_not_noticed_either(
    cluster: Processes, attack: Attack, record_property: Callable[[str, object], None]
) -> None:
    evaluate_a_minute(cluster, attack, attack.name, record_property)


@pytest.fixture(scope="module")
def large_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """As ``cluster``, with 60,000 partitions, whose brokers are not fenced for missing heartbeats.

    A fence would change all partitions at once and disturb the measurement.
    """
    settings = {"controller.session_timeout_ms": SESSION_MS}
    with running(tmp_path_factory.mktemp("home"), settings=settings) as cluster:

        async def create() -> None:
            cluster.leader()
            async with Client(cluster.addresses, timeout_seconds=60.0) as client:
                workload = Workload(client, "integration", seed=1, brokers=3)
                await workload.start_brokers()
                await workload.create_topics(
                    LARGE_TOPICS, LARGE_PARTITIONS, on_topic=lambda: None, writers=2
                )

        asyncio.run(create())
        yield cluster


@pytest.mark.nightly
def test_digests_of_a_large_image_are_not_noticed_either(
    large_cluster: Processes, record_property: Callable[[str, object], None]
) -> None:
    """Each takes half a second of processor time, and every write makes the next one necessary."""
    evaluate_a_minute(
        large_cluster, BY_NAME["describe_image"], "describe_image_60000", record_property
    )
