"""The volumes of a pod, filled as a kubelet fills them: owners, modes and links as in Kubernetes.

A Secret is a folder per version, a link ``..data`` to the newest one, and a link through that one
for each key: so all keys change in one step. Files belong to root and to the group of ``fsGroup``.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.kubernetes.pod_user import PodUser

DEFAULT_MODE = 0o644
"""Of a Secret's files, if the pod says nothing."""
_GROUP_READS = 0o440
_FOLDER_MODE = 0o755
_OPEN_FOLDER_MODE = 0o1777
_CLAIM_MODE = 0o775

_versions = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a pod: a claim that outlives it, a Secret, or else an empty folder."""

    name: str
    is_claim: bool = False
    secret: str = ""
    paths: tuple[tuple[str, str], ...] = ()
    """Keys of the Secret with their paths; without any, all keys by their names."""
    mode: int = DEFAULT_MODE

    def place(self, folder: Path, pod: str) -> Path | None:
        """Where the files are on this machine; None of an empty folder."""
        if self.is_claim:
            return folder / pod
        return folder / f"{pod}.{self.name}" if self.secret else None

    def fill(self, folder: Path, pod: str, user: PodUser, secrets: Path) -> None:
        """Make the claim, or bring the Secret's present keys; what is missing fails."""
        place = self.place(folder, pod)
        if place is None:
            return
        if not place.exists():
            place.mkdir()
            user.own(place, _CLAIM_MODE if self.is_claim else _OPEN_FOLDER_MODE)
        if self.secret:
            self._fill_secret(place, user, secrets / self.secret)

    def _fill_secret(self, place: Path, user: PodUser, secret: Path) -> None:
        keys = {each.name: each.read_bytes() for each in secret.iterdir()}
        version = place / f"..{next(_versions):010}"
        version.mkdir()
        for key, path in self.paths or [(key, key) for key in keys]:
            file = version / path
            file.write_bytes(keys[key])
            user.own(file, self.mode | _GROUP_READS)
            link = place / path
            if not link.is_symlink():
                link.symlink_to(Path("..data", path))
        user.own(version, _FOLDER_MODE)
        newest, next_link = place / "..data", place / "..data_tmp"
        old = newest.readlink() if newest.is_symlink() else None
        next_link.symlink_to(version.name)
        next_link.rename(newest)
        if old is not None:
            shutil.rmtree(place / old)


def volumes_of(stateful: Mapping[str, Any]) -> dict[str, Volume]:
    """The volumes of a StatefulSet's pods by name."""
    claims = [each["metadata"]["name"] for each in stateful["volumeClaimTemplates"]]
    found = {name: Volume(name, is_claim=True) for name in claims}
    for each in stateful["template"]["spec"]["volumes"]:
        name = each["name"]
        if "secret" in each:
            found[name] = _secret(name, each["secret"])
        else:
            assert each == {"name": name, "emptyDir": {}}, f"an unknown kind of volume: {each}"
            found[name] = Volume(name)
    return found


def _secret(name: str, text: Mapping[str, Any]) -> Volume:
    assert set(text) <= {"secretName", "items", "defaultMode"}, text
    items: Sequence[Mapping[str, str]] = text.get("items", ())
    return Volume(
        name,
        secret=text["secretName"],
        paths=tuple((each["key"], each["path"]) for each in items),
        mode=text.get("defaultMode", DEFAULT_MODE),
    )
