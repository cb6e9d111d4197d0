"""Every task and thread that lives as long as its process is supervised; no other may be started.

``quorum.supervisor`` starts long-lived tasks. The tasks listed here end earlier, or their starter
watches them; each row says how. A row without its call is stale and fails as well.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = (
    "quorum",
    "statemachine",
    "snapshot",
    "metrics",
    "history",
    "quorate",
    "audit",
    "pyspark_quorate",
    "simulation",
)
SUPERVISOR = "quorum/supervisor.py"
STARTERS = frozenset({"create_task", "ensure_future", "Thread", "TaskGroup", "start_new_thread"})

WATCHED = {
    "audit/interruptible.py": "a thread; the query that started it waits for its end",
    "quorate/broker_agent/agent.py": "`run` awaits them; the failure of either ends the agent",
    "quorate/cli/agent_run.py": "the command awaits them; all end with it",
    "quorate/cli/broker_session.py": "the command awaits it",
    "quorate/cli/patience.py": "the command awaits it",
    "quorate/client/authenticator.py": "the calls that wait for it end with it",
    "quorate/client/blocking.py": "a loop of its own; what runs on it is awaited",
    "quorate/client/stream.py": "ends with its stream; a lost stream is searched again",
    "quorate/client/writer.py": "a failed search is begun again by the next sweep",
    "quorate/console/follower.py": "a group that the console awaits; a lost watch is opened again",
    "quorate/console/run.py": "a group whose failure ends the console",
    "quorate/demo/story.py": "the demo awaits it",
    "quorate/demo/workload.py": "the demo awaits it",
    "quorate/importer/copying.py": "the import awaits it",
    "quorate/server/ending.py": "the process awaits it, and its failure ends the process",
    "quorate/server/guest.py": "`live` awaits it; its end is the end of the process",
    "quorate/server/scrubber.py": "a thread whose failure ends the process",
    "quorate/server/tracing.py": "a thread; the stop waits a second for it",
    "quorate/server/worker.py": "a thread; a job's failure is its future's",
    "quorate/services/change_feed.py": "one message; every watcher that needs it awaits it",
    "quorate/services/stream_session.py": "ends with its stream, which awaits it",
    "quorum/runtime/writer.py": "a thread whose failure ends the process",
    "quorum/transport/inbound.py": "one read and one end; both end with their stream",
    "quorum/transport/peers.py": "closes one channel; the stop awaits it",
    "quorum/transport/server.py": "one goodbye each, awaited for a bounded time",
    "quorum/transport/tcp_server.py": "one stream each; a failure goes to the loop's handler",
    "simulation/recoveries/watcher.py": "the run awaits them, and raises what they raise",
}


def starts_of(source: str) -> list[int]:
    """Lines that start a task or thread by hand."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Attribute) and node.func.attr in STARTERS)
            or (isinstance(node.func, ast.Name) and node.func.id in STARTERS)
        )
    ]


def found() -> Counter[str]:
    counts: Counter[str] = Counter()
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            lines = starts_of(path.read_text(encoding="utf-8"))
            if lines:
                counts[path.relative_to(ROOT).as_posix()] = len(lines)
    return counts


def test_no_task_is_started_past_the_supervisor() -> None:
    assert set(found()) - {SUPERVISOR} == set(WATCHED)


def test_the_check_sees_every_way_to_start_one() -> None:
    """A check that cannot fail proves nothing."""
    bare = (
        "asyncio.create_task(work())\n"
        "loop.create_task(work())\n"
        "asyncio.ensure_future(work())\n"
        "threading.Thread(target=work)\n"
        "Thread(target=work)\n"
    )
    assert starts_of(bare) == [1, 2, 3, 4, 5]
    assert starts_of("supervisor.start('name', work)") == []
