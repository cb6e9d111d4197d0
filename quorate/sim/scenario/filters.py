"""Which messages ``deliver`` and ``drop`` mean."""

from __future__ import annotations

from quorate.sim.scenario.grammar import Arguments
from quorate.sim.scenario.world import Filter


def filter_of(args: Arguments) -> Filter:
    """The arguments ``from=``, ``to=`` and ``type=``."""
    sender, to = args.numbers("from"), args.numbers("to")
    return Filter(sender[0] if sender else None, to[0] if to else None, args.text("type"))
