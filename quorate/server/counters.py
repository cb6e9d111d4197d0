"""Counters that other parts of a server keep; their values are read at a scrape.

They are counts of this process, and a rate over a restart is what Prometheus makes of a counter
that begins again. Counters that events feed are in ``metrics.catalog``.
"""

from __future__ import annotations

from collections.abc import Callable

from metrics import catalog
from metrics.collectors import Reading, ScrapedMetric
from quorate.logs import suppressed_lines
from quorate.server.scrape import Scrape


def _digests_compared(scrape: Scrape) -> Reading:
    chain = scrape.node.chain
    return {name: getattr(chain, name) for name in ("equal", "different", "too_early", "unknown")}


def _queues_refused(scrape: Scrape) -> Reading:
    return {"commands": scrape.meter.refused} | {each.name: each.refused for each in scrape.quotas}


def _counter(
    name: str,
    help: str,  # noqa: A002
    read: Callable[[Scrape], Reading],
    *labels: str,
    kafka: str = "",
) -> ScrapedMetric[Scrape]:
    return ScrapedMetric(catalog.counter(name, help, *labels, kafka=kafka), read)


RAFT_COUNTERS = (
    _counter("raft_hellos_refused_total",
             "Streams refused: another cluster, node, configuration, incarnation or version.",
             lambda s: s.transport.hellos_refused),
    _counter("raft_streams_refused_by_peers_total",
             "Streams of this node that its peers have refused.",
             lambda s: s.transport.refused_by_peers),
    _counter("raft_clones_refused_total",
             "Streams refused: a second live process with a replica's key.",
             lambda s: s.transport.clones_refused),
    _counter("raft_impostors_refused_total",
             "Streams refused: the certificate is another node's.",
             lambda s: s.transport.impostors_refused),
    _counter("raft_frames_dropped_total",
             "Frames to peers dropped: too large, or behind others that did not leave.",
             lambda s: s.transport.outbox_dropped),
    _counter("raft_tcp_connects_total", "Peer streams of this node over TCP.",
             lambda s: s.transport.tcp_connects),
    _counter("raft_tcp_fallbacks_total",
             "Times that a peer's TCP port could not be used, so that gRPC was.",
             lambda s: s.transport.tcp_fallbacks),
    _counter("raft_digests_compared_total",
             "Fetches whose log digest this leader looked at, by result: equal, different, "
             "too_early, unknown.", _digests_compared, "result"),
    _counter("scrub_passes_total", "Times the node has read all its files again.",
             lambda s: s.scrubber.passes),
    _counter("scrub_read_bytes_total", "Bytes read again in the background.",
             lambda s: s.scrubber.read_bytes),
    _counter("scrub_findings_total", "Damage found by reading files again.",
             lambda s: s.scrubber.findings),
)  # fmt: skip

PROCESS_COUNTERS = (
    _counter("queue_rejections_total",
             "Calls, commands and streams refused because a bounded queue or quota was full.",
             _queues_refused, "queue", kafka="EventQueueOperationsTimedOutCount"),
    _counter("tasks_restarted_total", "Long-lived tasks started again after a failure.",
             lambda s: s.supervisor.restarts),
    _counter("log_lines_suppressed_total",
             "Lines kept out of the process log because too many of one kind came.",
             lambda _: suppressed_lines()),
)  # fmt: skip

COUNTERS = RAFT_COUNTERS + PROCESS_COUNTERS
"""All counters that are read on scrape."""
