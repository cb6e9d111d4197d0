"""Which topic names have changed lately, so that a sorted list of them need not be sorted again.

Every image knows the latest changes on the way to it. Whoever keeps something by name asks for
those since the image he last saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

GROUPS_MAX: Final = 512
"""Images whose changes are known; a longer history is cut in half."""
NAMES_MAX: Final = 8_192
"""Names that are known; the same."""


class History:
    """What images have in common that follow each other."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NameChanges:
    """The names created and deleted on the way to one image, the latest of them in ``latest``.

    Images of one history follow each other; those of another history have another ``origin``.
    """

    origin: History = field(default_factory=History)
    count: int = 0
    """How many changes there were in this history; a name may be among them several times."""
    latest: tuple[tuple[str, ...], ...] = ()

    def followed_by(self, names: list[str]) -> NameChanges:
        """Return the changes of the next image, which adds ``names``."""
        if len(names) > NAMES_MAX:
            return NameChanges()
        latest = (*self.latest, tuple(names))
        while len(latest) > GROUPS_MAX or sum(map(len, latest)) > NAMES_MAX:
            latest = latest[(len(latest) + 1) // 2 :]
        return NameChanges(self.origin, self.count + len(names), latest)

    def since(self, earlier: NameChanges) -> set[str] | None:
        """Return the names that changed after an earlier image; None if they are not known."""
        missing = self.count - earlier.count
        if self.origin is not earlier.origin or missing < 0:
            return None
        found: set[str] = set()
        for names in reversed(self.latest):
            if missing <= 0:
                break
            found.update(names)
            missing -= len(names)
        return found if missing <= 0 else None
