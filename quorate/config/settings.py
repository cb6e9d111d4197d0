"""Every key of the configuration in one table, read from the declarations of the section classes.

Loading, ``quorate config show --explain`` and docs/reference/configuration.md are made from it.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import get_args, get_type_hints

from quorate.config.server_config import ServerConfig
from quorum.setting import Declared, declared

Value = int | float | bool | str | Path | tuple[str, ...] | None
_SCALARS = (bool, int, float, str, Path)


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: ``section.name``, its type and default, and what is declared of it."""

    section: str
    name: str
    kind: type
    is_optional: bool
    """Whether the value may be absent; written as 0 or as an empty text."""
    default: Value
    declared: Declared

    @property
    def key(self) -> str:
        """The dotted key, as in ``--set``."""
        return f"{self.section}.{self.name}"

    @property
    def environment_name(self) -> str:
        """The variable that sets it."""
        return f"QUORATE__{self.section}__{self.name}".upper()


@cache
def settings() -> dict[str, Setting]:
    """All settings by dotted key, in the order of the file's sections."""
    found = [
        Setting(section, field.name, *_plain_kind(kinds[field.name]), field.default, each)
        for section, part_type in get_type_hints(ServerConfig).items()
        for kinds, known in ((get_type_hints(part_type), declared(part_type)),)
        for field in fields(part_type)
        if (each := known.get(field.name)) is not None
        and each.help
        and field.default is not MISSING
    ]
    return {each.key: each for each in found}


def _plain_kind(annotation: object) -> tuple[type, bool]:
    """The scalar type behind an annotation (``tuple`` for lists), and whether None is allowed."""
    choices = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    for kind in _SCALARS:
        if kind in choices:
            return kind, NoneType in choices
    return tuple, NoneType in choices
