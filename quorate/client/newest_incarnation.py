"""The newest incarnation of the log that a client has met: it never goes back to an older one.

A former voter has the directory of an incarnation that was lost. It serves what it has, and cannot
know of the recovery. The reader can: each answer about a position names the number of its
incarnation. Requests name the newest one met, and a node of an older one refuses them.

See: ADR 65 (incarnations); KIP-320.
"""

from __future__ import annotations

from typing import Protocol

from quorate.client.errors import UnavailableError


class _NamesIncarnation(Protocol):
    """An answer about positions."""

    @property
    def log_incarnation(self) -> bytes: ...

    @property
    def log_incarnation_number(self) -> int: ...


class NewestIncarnation:
    """A number that only rises; 0 until another incarnation than the first one was met."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0

    def know(self, number: int) -> None:
        """Note a number that was met before, as in a stored position."""
        self.number = max(self.number, number)

    def meet(self, answer: _NamesIncarnation) -> None:
        """Note the incarnation that an answer names. Former releases name no number.

        Raises:
            UnavailableError: It is of an older incarnation. Nothing in it counts; ask another node.
        """
        found = answer.log_incarnation_number
        if found == 0 and answer.log_incarnation:
            return
        if found < self.number:
            raise UnavailableError(
                f"answered by a node of incarnation {found} of the log, a former voter: "
                f"incarnation {self.number} is known"
            )
        self.number = found
