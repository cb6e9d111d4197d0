"""cluster voters=(1,2,3) [observers=(9)] [jitter=(0,0,50)] [fetch_max_wait_ms=500 ...]

Fresh, formatted, running nodes and a quiet network. Any setting of the core, the log or
checkpoints may follow by name. ``jitter`` pins each node's timers to that percentage of
their random range; without it they are 0, 10, 20 ... percent by position.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

from quorum.config import QuorumConfig
from quorum.log.config import LogConfig
from snapshot.config import SnapshotConfig
from tests.scenario.grammar import Arguments
from tests.scenario.member import Settings
from tests.scenario.world import World

_AT_ONCE = {"high_watermark_delay_ms": 0}
"""A commit is told when it happens, so that a script shows cause and effect together."""

Config = TypeVar("Config", QuorumConfig, LogConfig, SnapshotConfig)


def run(world: World, args: Arguments) -> None:
    voters = args.numbers("voters")
    settings = Settings(
        _config(QuorumConfig, args), _config(LogConfig, args), _config(SnapshotConfig, args), voters
    )
    observers, shares = args.numbers("observers"), args.numbers("jitter")
    args.finish()
    settings.quorum.validate()
    world.create(settings, observers, shares)


def _config(kind: type[Config], args: Arguments) -> Config:
    known = {field.name for field in fields(kind)}
    values = {name: value for name, value in _AT_ONCE.items() if name in known}
    values |= {name: args.number(name) for name in sorted(known & args.named.keys())}
    return kind(**values)
