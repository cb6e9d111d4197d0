"""cluster voters=(1,2,3) [observers=(9)] [jitter=(0,0,50)] [bootstrapped=0] [fetch_max_wait_ms=500
...]

Fresh, formatted, running nodes and a quiet network. Any setting of the core, the log or
checkpoints may follow by name. ``jitter`` pins each node's timers to that percentage of
their random range; without it they are 0, 10, 20 ... percent by position. ``relays=(4,5)`` are
observers that serve others; ``from_9=(4,5)`` lets observer 9 fetch from these, the first one first.
Observers know the addresses of all voters as bootstrap servers; ``servers_9=(7,2)`` gives node 9
those of nodes 7 and 2, whether they exist or not. With ``bootstrapped=0``
the voters are freshly formatted and have yet to found their quorum, waiting for all but those
in ``without=(3)``; ``down=(3)`` are formatted but not started. The quorum remembers as many
removed voters as ``tombstones=`` says. ``metadata_version_4=20`` makes node 4 one of an older
release, which supports metadata.version up to 20 only; ``lacks_4=(4,15)`` one whose release does
not know these record types, by API key.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from quorum.config import QuorumConfig
from quorum.core.state.upstream import RelayPlan
from quorum.log.config import LogConfig
from simulation.scenario.grammar import Arguments
from simulation.scenario.member import Settings
from simulation.scenario.world import World
from snapshot.config import SnapshotConfig

_AT_ONCE = {"high_watermark_delay_ms": 0, "append_delay_ms": 0, "disk_stall_ms": 1_000_000_000}
"""A commit is told when it happens, so that a script shows cause and effect together; and a disk
that waits for ``persist`` is no hung disk, unless a script is about just that."""

Config = TypeVar("Config", QuorumConfig, LogConfig, SnapshotConfig)


def run(world: World, args: Arguments) -> None:
    voters = args.numbers("voters")
    settings = Settings(
        _config(QuorumConfig, args),
        _config(LogConfig, args),
        _config(SnapshotConfig, args),
        voters,
        is_bootstrapped=bool(args.number("bootstrapped", 1)),
        bootstrap_without=args.numbers("without"),
        tombstones=args.number("tombstones", 0),
    )
    observers, shares = args.numbers("observers"), args.numbers("jitter")
    serving = args.numbers("relays")
    for each in (*voters, *observers):
        settings.relays[each] = RelayPlan(each in serving, args.numbers(f"from_{each}"))
        servers = args.numbers(f"servers_{each}")
        if servers:
            settings.servers[each] = servers
    for each in (*voters, *observers):
        highest = args.number(f"metadata_version_{each}", 0)
        if highest:
            settings.metadata_versions[each] = highest
        settings.lacks[each] = args.numbers(f"lacks_{each}")
    down = args.numbers("down")
    args.finish()
    settings.quorum.validate()
    world.create(settings, observers, shares, down)


def _config(kind: type[Config], args: Arguments) -> Config:
    known = {field.name for field in fields(kind)}
    values: dict[str, Any] = {name: value for name, value in _AT_ONCE.items() if name in known}
    # A switch is on at 1.
    values |= {name: args.number(name) for name in sorted(known & args.named.keys())}
    return kind(**values)
