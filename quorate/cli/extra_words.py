"""A word behind a command that belongs behind one of its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import click

from quorate.cli.ranges import Number, WholeNumber

_PRINCIPAL = "User:"
_NUMBER = re.compile(r"[0-9]+([.][0-9]+)?")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_ADDRESSES = re.compile(r"([^\s:,\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}(,[^\s,]+:[0-9]{1,5})*")
_OF_NODES = frozenset({"health", "top"})
"""Commands that act on nothing but the nodes, so that a word is one of these."""
_NEVER_MEANT = frozenset({"--reason", "--writer", "--request-id", "--read", "--at-least"})
"""Options that say nothing about what the command acts on."""


class StrictCommand(click.Command):
    """A command that answers an argument too many with the options it may belong to."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, which names no option.

        Raises:
            click.UsageError: There are too many arguments, or what click finds.
        """
        is_lenient = ctx.allow_extra_args
        ctx.allow_extra_args = True
        extra = super().parse_args(ctx, args)
        ctx.allow_extra_args = is_lenient
        if extra and not is_lenient and not ctx.resilient_parsing:
            named = " ".join(extra)
            ctx.fail(
                f"Got unexpected extra argument{'s' if extra[1:] else ''} ({named})"
                + (self._hint_for_node(extra[0]) or self._hint_for_option(extra[0]))
            )
        return extra

    def _hint_for_option(self, word: str) -> str:
        return hint_for_extra(word, [each for each in self.params if _is_own(each)])

    def _hint_for_node(self, word: str) -> str:
        """Return a sentence with ``--bootstrap`` if the word is a node's address or host."""
        if not any("--bootstrap" in each.opts for each in self.params):
            return ""
        if _ADDRESSES.fullmatch(word) and not word.startswith(_PRINCIPAL):
            return f". Write --bootstrap {shlex.quote(word)}"
        is_host = self.name in _OF_NODES and _HOST.fullmatch(word) and not _NUMBER.fullmatch(word)
        return f". Write --bootstrap {word}:PORT" if is_host else ""


def hint_for_extra(word: str, options: Sequence[click.Parameter]) -> str:
    """Return a sentence with the options that ``word`` fits; empty if it fits none.

    An option fits by its form: a principal, one of its choices, a number that it takes. A word of
    none of these forms fits options for a name or another text.
    """
    found = [(each, value) for each in options if (value := _value(word, each)) is not None]
    if not found and not word.startswith(_PRINCIPAL) and not _NUMBER.fullmatch(word):
        found = [(each, word) for each in options if _is_text(each)]
    if not found:
        return ""
    written = [f"{each.opts[0]} {shlex.quote(value)}" for each, value in found]
    *others, last = written
    return f". Write {', '.join(others)} or {last}" if others else f". Write {last}"


def _is_own(parameter: click.Parameter) -> bool:
    return (
        isinstance(parameter, click.Option)
        and not (parameter.hidden or parameter.is_flag)
        and parameter.expose_value
        and parameter.opts[0] not in _NEVER_MEANT
    )


def _value(word: str, option: click.Parameter) -> str | None:
    """Return what the option takes in place of the word; None if the word has not its form."""
    kind = option.type
    if isinstance(kind, click.Choice):
        known = list(map(str, kind.choices))
        # The option may take the letters in this case only, and ``word`` where it takes any.
        if word in known or not kind.case_sensitive:
            return word if word.lower() in map(str.lower, known) else None
        return next((each for each in known if each.lower() == word.lower()), None)
    if isinstance(kind, WholeNumber | Number):
        return word if _NUMBER.fullmatch(word) and _takes(kind, word) else None
    return word if _is_principal(option) and word.startswith(_PRINCIPAL) else None


def _takes(kind: WholeNumber | Number, word: str) -> bool:
    try:
        kind.convert(word, None, None)
    except click.BadParameter:
        return False
    return True


def _is_text(option: click.Parameter) -> bool:
    return option.type is click.STRING and not _is_principal(option)


def _is_principal(option: click.Parameter) -> bool:
    return (option.metavar or "").startswith(_PRINCIPAL)
