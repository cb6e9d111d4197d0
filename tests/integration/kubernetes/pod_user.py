"""Who the processes and the volumes of a pod belong to, as the rendered pod says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT_USER = 0
_FOLDER_MASK = 0o2110
"""What a volume's group gets on folders: to enter them, and that new files are its own."""


@dataclass(frozen=True, slots=True)
class PodUser:
    """User, group, and the group that owns the pod's volumes."""

    user: int
    group: int
    volumes_group: int

    def command(self, words: Sequence[str]) -> list[str]:
        """The command that runs ``words`` as this user, without any capability.

        Where users cannot be changed, it is the own user: files are its own then, but their modes
        count, for it has lost the right to ignore them.
        """
        changed = ()
        if can_change_users():
            changed = (
                f"--reuid={self.user}", f"--regid={self.group}", f"--groups={self.volumes_group}",
            )  # fmt: skip
        return [
            "setpriv", *changed, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", *words,
        ]  # fmt: skip

    def own(self, path: Path, mode: int) -> None:
        """Give a file or folder of a volume to root and the volumes' group, with this mode."""
        if can_change_users():
            os.chown(path, ROOT_USER, self.volumes_group)
        path.chmod(mode | _FOLDER_MASK if path.is_dir() else mode)


def can_change_users() -> bool:
    """Whether this process stands for all users, not for root alone."""
    return int(Path("/proc/self/uid_map").read_text().split()[2]) > 1
