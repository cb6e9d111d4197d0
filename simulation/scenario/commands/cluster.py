"""cluster voters=(1,2,3) [observers=(9)] [jitter=(0,0,50)] [bootstrapped=0] [fetch_max_wait_ms=500
...]

Format and start the nodes. Any setting of the core, the log or checkpoints may follow by name.
``jitter`` fixes each node's timers at that percentage of their random range; the default is 0, 10,
20 ... percent by position. ``relays=(4,5)``: observers that serve others. ``from_9=(4,5)``: the
relays of observer 9, the first one first. Observers know the addresses of all voters as bootstrap
servers; ``servers_9=(7,2)`` gives node 9 those of nodes 7 and 2, whether they exist or not.
``bootstrapped=0``: the voters still have to bootstrap their quorum, and wait for all voters but
those in ``without=(3)``. ``down=(3)`` are formatted but not started. ``tombstones=``: number of
removed voters in the bootstrap checkpoint. ``metadata_version_4=20``: node 4 has an older release
that supports metadata.version only up to 20. ``lacks_4=(4,15)``: its release lacks these record
types, by API key.
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
"""Followers learn of a commit at once, so that a script shows cause and effect together. A disk
that waits for ``persist`` does not count as hung, unless a script sets that timeout."""

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
    values |= {name: args.number(name) for name in sorted(known & args.named.keys())}
    # A boolean setting is on at 1, and must be a boolean: the compiled core takes nothing else.
    switches = {field.name for field in fields(kind) if isinstance(field.default, bool)}
    values |= {name: bool(values[name]) for name in switches & values.keys()}
    return kind(**values)
