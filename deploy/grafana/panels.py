"""The panels of the dashboard: what each shows, what it means, and where its colours begin.

Queries are written without the selectors of the dashboard's variables (``dashboard.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

STATES: Final = (
    ("unattached", "text"),
    ("prospective", "yellow"),
    ("candidate", "orange"),
    ("leader", "green"),
    ("follower", "blue"),
    ("observer", "purple"),
    ("resigned", "red"),
)
"""Every state with its colour; its number in the timeline is its place here, from 1."""


@dataclass(frozen=True)
class Panel:
    """One panel: ``queries`` by legend; ``orange`` and ``red`` are where its colours begin.

    ``is_low_bad``: the colours are for values below them.
    """

    title: str
    description: str
    queries: dict[str, str]
    unit: str = "short"
    orange: float | None = None
    red: float | None = None
    is_low_bad: bool = False
    kind: str = "timeseries"
    mappings: list[dict[str, Any]] = field(default_factory=list)


def per_second(name: str, labels: str) -> str:
    """Return the rate of a counter, summed over all other labels."""
    return f"sum by (cluster, {labels}) (rate({name}[$__rate_interval]))"


def lately(name: str, *labels: str) -> str:
    """Return how much a counter rose within five minutes."""
    kept = "".join(f", {each}" for each in labels)
    return f"sum by (cluster, instance{kept}) (increase({name}[5m]))"


def quantile(share: float, name: str, label: str = "instance") -> str:
    """Return a quantile of a histogram."""
    rates = f"rate({name}_bucket[$__rate_interval])"
    return f"histogram_quantile({share}, sum by (cluster, {label}, le) ({rates}))"


def both(name: str) -> dict[str, str]:
    """Return median and 99th percentile of a histogram."""
    return {
        "{{instance}} p50": quantile(0.5, name),
        "{{instance}} p99": quantile(0.99, name),
    }


ROLE: Final = "sum by (cluster, instance) ({})".format(
    " or ".join(
        f'quorate_raft_state{{state="{state}"}} * {number}'
        for number, (state, _) in enumerate(STATES, 1)
    )
)
ROLE_NAMES: Final = [
    {
        "type": "value",
        "options": {
            str(number): {"text": state, "color": colour}
            for number, (state, colour) in enumerate(STATES, 1)
        },
    }
]
NO_LEADER: Final = [
    {"type": "value", "options": {"-1": {"text": "no leader", "color": "red"}}}
]  # fmt: skip

ROWS: Final[dict[str, list[Panel]]] = {
    "Quorum": [
        Panel("Leadership", "The role of each node over time. A healthy quorum has one green line; "
              "yellow and orange are elections. Many short bands: see the runbook Leader-flaps.",
              {"{{instance}}": ROLE}, kind="state-timeline", mappings=ROLE_NAMES),
        Panel("Leader", "Id of the leader that answers. Red: no node leads, and nothing "
              "can be written (alert QuorateNoLeader).",
              {"{{cluster}}": "max by (cluster) (quorate_raft_leader_id)"},
              kind="state-timeline", mappings=NO_LEADER),
        Panel("Accepts writes", "Nodes that lead and accept writes: 1 for each healthy cluster.",
              {"{{cluster}}": "sum by (cluster) (quorate_raft_can_write)"},
              red=1, is_low_bad=True, kind="stat"),
        Panel("Failed checks", "Readiness checks that fail now. /readyz of the node has the "
              "reason. One failure that lasts needs a look.",
              {"{{cluster}} {{check}}": "sum by (cluster, check) (quorate_check_ok == bool 0)"},
              red=1, kind="stat"),
        Panel("Further voters that may fail", "Voters that report, minus a majority. At 0 one more "
              "failure stops all writes (alert QuorateMajorityAtRisk). With one voter it is "
              "always 0.",
              {"{{cluster}}": "count by (cluster) (quorate_raft_is_voter == 1) - floor(max by "
               "(cluster) (quorate_raft_voters) / 2) - 1"},
              red=1, is_low_bad=True, kind="stat"),
        Panel("Epoch", "The epoch of each node. It rises with every election; one node above the "
              "others follows nobody.", {"{{instance}}": "quorate_raft_epoch"}),
        Panel("Positions", "High watermark, log end and what is applied. The lines of one node run "
              "together; a gap that grows is a node that falls behind.",
              {"{{instance}} high watermark": "quorate_raft_high_watermark",
               "{{instance}} log end": "quorate_raft_log_end_offset",
               "{{instance}} applied": "quorate_applied_end_offset",
               "{{instance}} log start": "quorate_raft_log_start_offset"}),
        Panel("Lag of replicas", "Records that the leader has and a replica has not fetched (alert "
              "QuorateReplicaLags above 100,000).",
              {"{{replica}} {{role}}":
               "max by (cluster, replica, role) (quorate_raft_replica_lag_records)"},
              orange=10_000, red=100_000),
        Panel("Last fetch of replicas", "Time since the leader heard a replica fetch. Above the "
              "fetch timeout it counts as silent.",
              {"{{replica}} {{role}}":
               "max by (cluster, replica, role) (quorate_raft_replica_fetch_age_seconds)"},
              unit="s", orange=1, red=3),
        Panel("Leader changes", "Leaderships seen within five minutes, and leaders whose process "
              "was found gone. More than four changes in a quarter of an hour are an alert.",
              {"{{instance}} changes": lately("quorate_raft_leader_changes_total"),
               "{{instance}} lost": lately("quorate_raft_leader_lost_total")},
              orange=2, red=4),
    ],
    "Latency": [
        Panel("Commit", "Append on the leader until a majority has it: one sync and one round trip "
              "(alert QuorateSlowCommit).", both("quorate_raft_commit_seconds"),
              unit="s", orange=0.1, red=0.5),
        Panel("Sync of the log", "One sync of the log: 0.1 ms on a good disk, seconds on a failing "
              "one (alert QuorateSlowSync).", both("quorate_log_sync_seconds"),
              unit="s", orange=0.05, red=0.25),
        Panel("Apply", "Applying one committed range to the image. It takes the event loop, so "
              "long ones delay everything.",
              {"{{instance}} p99": quantile(0.99, "quorate_apply_seconds")},
              unit="s", orange=0.1, red=0.5),
        Panel("Election", "Start of an election until a leader is known. Nothing is written "
              "meanwhile.", {"{{instance}} p99": quantile(0.99, "quorate_raft_election_seconds")},
              unit="s", orange=1, red=4),
        Panel("Linearizable reads", "Arrival of a read until its position is confirmed: one round "
              "trip.", {"{{instance}} p99": quantile(0.99, "quorate_raft_read_seconds")},
              unit="s", orange=0.1, red=0.5),
        Panel("Calls", "Length of unary calls by method. Compare it with Commit before you look "
              "for the cause in a client.",
              {"{{method}} p99": quantile(0.99, "quorate_rpc_handling_seconds", "method")},
              unit="s", orange=0.5, red=2),
    ],
    "Load": [
        Panel("Records appended", "Records added to each log: by clients on the leader, by Fetch "
              "elsewhere.",
              {"{{instance}} {{source}}":
               per_second("quorate_raft_appended_records_total", "instance, source")},
              unit="wps"),
        Panel("Commands", "Client commands by type and result. Refusals of one type point at one "
              "program.",
              {"{{command}} {{result}}":
               per_second("quorate_commands_total", "command, result")}, unit="ops"),
        Panel("Calls by status", "Calls ended, by method and gRPC status.",
              {"{{method}} {{code}}": per_second("quorate_rpc_handled_total", "method, code")},
              unit="ops"),
        Panel("Queues, share of their bound", "Bounded queues: at 100 % further work is refused.",
              {"{{instance}} {{queue}}": "quorate_queue_size / quorate_queue_size_max"},
              unit="percentunit", orange=0.7, red=0.95),
        Panel("Refused by queues", "Work refused because a queue or a quota was full (alert "
              "QuorateQueueFull above 0).",
              {"{{instance}} {{queue}}":
               per_second("quorate_queue_rejections_total", "instance, queue")},
              unit="ops", red=0.001),
        Panel("Event loop busy", "Share of time that the event loop works. Near 100 % all "
              "latencies grow, and probes fail.",
              {"{{instance}}": "quorate_event_loop_busy_ratio"},
              unit="percentunit", orange=0.7, red=0.9),
        Panel("Access denied", "What callers may not do, by cause: their role, or ACLs. A rise "
              "after a change of ACLs is a mistake in it.",
              {"{{instance}} {{cause}}":
               per_second("quorate_access_denied_total", "instance, cause")},
              unit="ops", orange=0.001, red=10),
    ],
    "Process": [
        Panel("Processor time", "Cores that the process uses. Above 1 it is a checkpoint or "
              "compression beside the event loop.",
              {"{{instance}}": "rate(process_cpu_seconds_total[$__rate_interval])"},
              orange=0.8, red=1.5),
        Panel("Memory", "Resident memory of the process; size.md says what to expect by "
              "partitions.", {"{{instance}}": "process_resident_memory_bytes"},
              unit="bytes", orange=2e9, red=8e9),
        Panel("File descriptors", "Share of the descriptors that the process may open. At 100 % it "
              "can accept no connection.",
              {"{{instance}}": "process_open_fds / process_max_fds"},
              unit="percentunit", orange=0.7, red=0.9),
        Panel("Age of the process", "Time since the process started. A value that falls back to 0 "
              "again and again is a node that crashes.",
              {"{{instance}}": "time() - process_start_time_seconds"},
              unit="s", red=60, is_low_bad=True),
    ],
    "Checkpoints and disk": [
        Panel("Checkpoint size", "Size of the newest checkpoint. It grows with the metadata, not "
              "with time.", {"{{instance}}": "quorate_snapshot_size_bytes"}, unit="bytes"),
        Panel("Records since the checkpoint", "What a start has to replay, and what a replica may "
              "fetch as log (alert QuorateCheckpointStale).",
              {"{{instance}}": "quorate_snapshot_lag_records"},
              orange=10_000_000, red=50_000_000),
        Panel("Writing and loading", "How long checkpoints take. Writing is paced, and delays no "
              "write.",
              {"{{instance}} write": quantile(0.99, "quorate_snapshot_generate_seconds"),
               "{{instance}} load": quantile(0.99, "quorate_snapshot_load_seconds")},
              unit="s", orange=60, red=300),
        Panel("Failed checkpoints", "Checkpoints that could not be written or loaded within five "
              "minutes: usually a full disk (alert QuorateCheckpointStale).",
              {"{{instance}} {{operation}}":
               lately("quorate_snapshot_failures_total", "operation")}, red=0.5),
        Panel("Log on disk", "Bytes of the metadata log. It falls when a checkpoint trims it.",
              {"{{instance}}": "quorate_log_size_bytes"}, unit="bytes"),
        Panel("Free space", "Free space of the data directory's file system (alert "
              "QuorateDiskLow).", {"{{instance}}": "quorate_disk_free_bytes"},
              unit="bytes", orange=5e9, red=1e9, is_low_bad=True),
        Panel("Damage", "Files set aside as damaged, damage found by reading files again, and "
              "digests that differ from a peer's. Anything above 0 needs a look.",
              {"{{instance}} set aside": "quorate_quarantined_files",
               "{{instance}} found": "quorate_scrub_findings_total",
               "{{instance}} digests": "quorate_digest_mismatches_total"}, red=1),
    ],
    "Metadata": [
        Panel("Brokers", "Registered brokers by state. Fenced ones sent no heartbeat in time.",
              {"{{cluster}} {{state}}": "max by (cluster, state) (quorate_brokers)"}),
        Panel("Topics and partitions", "What the image holds; producers are clients whose sequence "
              "numbers are kept.",
              {"{{cluster}} topics": "max by (cluster) (quorate_topics)",
               "{{cluster}} partitions": "max by (cluster) (quorate_partitions)",
               "{{cluster}} producers": "max by (cluster) (quorate_producers)"}),
        Panel("Partitions without a leader", "Nobody can write to them or read from them (alert "
              "QuoratePartitionsOffline).",
              {"{{cluster}}": "max by (cluster) (quorate_partitions_offline)"}, red=1),
    ],
    "Problems between nodes": [
        Panel("Requests refused", "Requests of peers answered with an error. A few are normal "
              "around an election.",
              {"{{request}} {{error}}":
               per_second("quorate_raft_requests_refused_total", "request, error")},
              unit="ops", orange=1, red=100),
        Panel("Streams refused", "Connections of peers refused within five minutes: another "
              "cluster or configuration, a copied disk, another node's certificate.",
              {"{{instance}} hello": lately("quorate_raft_hellos_refused_total"),
               "{{instance}} copied disk": lately("quorate_raft_clones_refused_total"),
               "{{instance}} certificate": lately("quorate_raft_impostors_refused_total"),
               "{{instance}} by a peer": lately("quorate_raft_streams_refused_by_peers_total")},
              red=1),
        Panel("Messages ignored", "Messages dropped as stale, which is normal, or as against the "
              "protocol, which is an alert.",
              {"{{message}} ignored": per_second("quorate_raft_messages_ignored_total", "message"),
               "{{message}} violation":
               per_second("quorate_raft_protocol_violations_total", "message")}, unit="ops"),
        Panel("Frames dropped", "Messages that never left within five minutes; the replica asks "
              "again (alert QuorateFramesDropped if it goes on).",
              {"{{instance}}": lately("quorate_raft_frames_dropped_total")}, orange=1, red=100),
        Panel("Divergences", "Logs cut to agree with the leader, which follows a failover, and "
              "cuts that were refused, which never happens in a healthy quorum.",
              {"{{instance}} cut": lately("quorate_raft_log_divergences_total"),
               "{{instance}} refused": lately("quorate_raft_truncations_refused_total")}, red=1),
        Panel("Restarts and pauses", "Tasks started again after a failure, and times that the "
              "process did not run. Either is a line in the log.",
              {"{{instance}} tasks": lately("quorate_tasks_restarted_total"),
               "{{instance}} pauses": lately("quorate_raft_process_pauses_total"),
               "{{instance}} disk": lately("quorate_raft_disk_stalls_total")}, orange=1, red=5),
    ],
}  # fmt: skip
