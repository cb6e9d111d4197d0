"""An option that was written before the command that has it."""

from __future__ import annotations

from collections.abc import Iterable

import click


def command_with(option: str, words: Iterable[str], group: click.Group, ctx: click.Context) -> str:
    """Return the command of this group that the words name, if it has the option; else nothing."""
    path: list[str] = []
    place: click.Command = group
    for word in words:
        found = place.get_command(ctx, word) if isinstance(place, click.Group) else None
        if found is not None:
            place = found
            path.append(word)
    has_it = any(option in (*each.opts, *each.secondary_opts) for each in place.params)
    return " ".join(path) if path and has_it else ""
