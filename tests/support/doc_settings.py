"""The settings table of docs/reference/configuration.md, and the exit codes of cli.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorate.cli.exits import Exit
from quorate.config.settings import settings
from quorum.setting import Range
from tests.support.doc_regions import table


def shown_default(value: object) -> str:
    """Return a default as people write it; empty if there is none or the feature is off."""
    if value in (None, "", Path(), ()) or (value == -1 and not isinstance(value, bool)):
        return ""
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _shown_range(found: Range | None) -> str:
    return f"{found.least} to {found.most}" if found is not None else ""


def settings_table() -> str:
    return table(
        ["Key", "Default", "Range", "Kafka's key", "Meaning"],
        [
            [
                f"`{key}`",
                _code(shown_default(each.default)),
                _shown_range(each.declared.range),
                _code(each.declared.kafka),
                each.declared.help,
            ]
            for key, each in settings().items()
        ],
    )


_EXIT_MEANINGS = {
    Exit.OK: "Done.",
    Exit.FAILED: "Failed, for a reason not listed below.",
    Exit.USAGE: "Wrong usage, a configuration that cannot work, or files of another account.",
    Exit.UNHEALTHY: "Unhealthy, or two things that should be equal differ.",
    Exit.NOT_FOUND: "Not found.",
    Exit.CONFLICT: "Conflict: a name is taken, a thing changed, or brokers are missing or fenced.",
    Exit.REFUSED: "Refused as unsafe or against a policy.",
    Exit.UNREACHABLE: "Nobody reachable, no quorum, or the outcome of a write is not known.",
    Exit.DAMAGED: "Damaged data on disk, or a disk that fails under a server.",
    Exit.INTERRUPTED: "Interrupted.",
}


def exit_codes() -> str:
    return table(["Code", "Meaning"], [[int(each), _EXIT_MEANINGS[each]] for each in Exit])


MAKERS: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "exit-codes": exit_codes,
}
