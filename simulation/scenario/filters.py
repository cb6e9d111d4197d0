"""Parse the arguments with which a command selects messages."""

from __future__ import annotations

from simulation.scenario.envelopes import REQUESTS, RESPONSES, Filter
from simulation.scenario.grammar import Arguments, ScenarioError


def filter_of(args: Arguments) -> Filter:
    """Return the filter given by ``from=``, ``to=``, ``type=`` and ``only=``."""
    sender, to = args.numbers("from"), args.numbers("to")
    return Filter(
        sender[0] if sender else None, to[0] if to else None, args.text("type"), only_of(args)
    )


def only_of(args: Arguments) -> str:
    """Return the value of ``only=``: ``requests``, ``responses`` or empty for both."""
    only = args.text("only")
    if only not in ("", REQUESTS, RESPONSES):
        raise ScenarioError(f"{args.name}: only={REQUESTS} or only={RESPONSES}, not {only}")
    return only
