"""Whether the log of a directory is of the incarnation that ``meta.properties`` names.

A directory is formatted for one incarnation. While its node still copies the log, the log may be of
an earlier one. The log of an incarnation that began here, and that the directory does not name, is
that of an interrupted recovery.

See: ADR 65.
"""

from __future__ import annotations

from pathlib import Path

from quorum.core.messages.received_records import VotersAt
from quorum.errors import IdentityError
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.log.layout import META_PROPERTIES_NAME
from quorum.types import ZERO_UUID, Uuid, uuid_to_text


def is_unfinished(named: Uuid, found: LogIncarnation) -> bool:
    """Whether the log began ``found`` and ``meta.properties`` still names the one before it.

    A directory of the zero id never holds a log of another incarnation in any other way.
    """
    return found.id != named and named in (found.previous_id, ZERO_UUID)


def check_incarnation(data_dir: Path, named: Uuid, voters: tuple[VotersAt, ...]) -> None:
    """Refuse a directory in which an incarnation was begun and not finished.

    ``voters`` are its voters records, ascending.

    Raises:
        IdentityError: It is unfinished; the message names both ids and the command to run.
    """
    found = voters[-1].incarnation if voters else FIRST_INCARNATION
    if is_unfinished(named, found):
        raise IdentityError(
            f"the log has begun incarnation {found.number}, {uuid_to_text(found.id)}, and this "
            f"directory is of {incarnation_text(named)}: a recovery or a restore was interrupted; "
            "repeat the same command (`quorate recover apply` or `quorate backup restore`)",
            data_dir / META_PROPERTIES_NAME,
        )


def incarnation_text(incarnation_id: Uuid) -> str:
    """Return an id for people."""
    if incarnation_id == ZERO_UUID:
        return "the first incarnation"
    return f"incarnation {uuid_to_text(incarnation_id)}"
