"""An image as a tree of names, for people who look around in it.

``/topic/orders`` is an entity, ``/config/topic:orders`` a folder of entities. The first level are
the kinds; below them, each part of an entity's name is a level. A slash inside of a part is
written ``%2F``, a percent sign ``%25``.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterator
from typing import TypeAlias

from quorate.timetravel.entities import Entity, entities
from quorate.timetravel.kinds import KINDS
from quorum.errors import QuorumUsageError
from statemachine.image import MetadataImage

Path: TypeAlias = tuple[str, ...]
"""Names from the root on; the root is ``()``."""
Folder: TypeAlias = dict[str, "Folder | Entity"]


class NoSuchPathError(QuorumUsageError):
    """Nothing has this path."""


def part_text(part: str) -> str:
    """Return one part of an entity's name as it is written in a path."""
    quoted = part.replace("%", "%25").replace("/", "%2F")
    return quoted.replace(".", "%2E") if quoted in ("", ".", "..") else quoted


def path_text(path: Path) -> str:
    """Return the path from the root, such as ``/topic/orders``."""
    return "/" + "/".join(path)


def resolve(text: str, working: Path) -> Path:
    """Return the path that ``text`` names, relative to ``working`` unless it begins with a slash.

    ``.`` and ``..`` mean what they mean in a shell; the root is its own parent.
    """
    path = [] if text.startswith("/") else list(working)
    for part in text.split("/"):
        if part == "..":
            del path[-1:]
        elif part not in ("", "."):
            path.append(part)
    return tuple(path)


class ImageTree:
    """The tree of one image. A kind is read from the image when it is first visited."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._kinds: dict[str, Folder] = {}
        self._present: list[str] = []

    def entity(self, path: Path) -> Entity | None:
        """Return the entity of this path; None for a folder.

        Raises:
            NoSuchPathError: There is no such path.
        """
        found = self._find(path) if path else None
        return found if isinstance(found, Entity) else None

    def names(self, path: Path) -> list[str]:
        """Return the names in a folder in order; those of folders end with a slash.

        Raises:
            NoSuchPathError: There is no such folder.
        """
        if not path:
            return [f"{kind}/" for kind in self._kinds_present()]
        found = self._find(path)
        if isinstance(found, Entity):
            raise NoSuchPathError(f"{path_text(path)} is no folder")
        return [name + ("" if isinstance(each, Entity) else "/") for name, each in found.items()]

    def walk(self, path: Path, *, depth: int | None = None) -> Iterator[tuple[Path, bool]]:
        """Yield every path below a folder and whether it is a folder, parents first.

        ``depth`` limits how many levels are visited.

        Raises:
            NoSuchPathError: There is no such path.
        """
        if depth == 0:
            return
        for name in self.names(path):
            below = (*path, name.removesuffix("/"))
            is_folder = name.endswith("/")
            yield below, is_folder
            if is_folder:
                yield from self.walk(below, depth=None if depth is None else depth - 1)

    def find(self, pattern: str, path: Path) -> Iterator[Path]:
        """Yield the entities below ``path`` that match a pattern of a shell (``*``, ``?``).

        A pattern with a slash is compared with the whole path, any other with the last name.

        Raises:
            NoSuchPathError: There is no such path.
        """
        whole = "/" in pattern
        for below, is_folder in self.walk(path):
            if not is_folder:
                text = path_text(below) if whole else below[-1]
                if fnmatch.fnmatchcase(text, pattern):
                    yield below

    def _find(self, path: Path) -> Folder | Entity:
        found: Folder | Entity = {}
        for depth, name in enumerate(path):
            if isinstance(found, Entity):
                raise NoSuchPathError(f"{path_text(path[:depth])} is no folder")
            below = self._kind(name) if depth == 0 else found.get(name)
            if not below:
                text = f"there is no {path_text(path[: depth + 1])}"
                known = self._kinds_present() if depth == 0 else list(found)
                near = difflib.get_close_matches(name, known, 1)
                near_text = f"; did you mean {path_text((*path[:depth], *near))}?" if near else ""
                raise NoSuchPathError(text + near_text)
            found = below
        return found

    def _kinds_present(self) -> list[str]:
        if not self._present:
            present = {each.kind for each in entities(self._image)}
            self._present = [kind for kind in KINDS if kind in present]
        return self._present

    def _kind(self, kind: str) -> Folder:
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = {}
            for entity in entities(self._image):
                if entity.kind == kind:
                    _place(found, entity)
        return found


def _place(kind: Folder, entity: Entity) -> None:
    *folders, last = map(part_text, entity.parts)
    into = kind
    for name in folders:
        inner = into.setdefault(name, {})
        assert isinstance(inner, dict)  # noqa: S101 - entities of a kind have equally many parts
        into = inner
    into[last] = entity
