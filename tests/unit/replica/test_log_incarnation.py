"""A directory whose log began an incarnation that ``meta.properties`` does not name is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.replica.log_incarnation import check_incarnation
from quorum.core.messages.received_records import VotersAt
from quorum.errors import IdentityError
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import ZERO_UUID, OffsetAndEpoch, Uuid, uuid_to_text

HOME = Path("/data")
SECOND = LogIncarnation(1, b"i" * 16, ZERO_UUID, OffsetAndEpoch(147, 9), b"r" * 32)
THIRD = LogIncarnation(2, b"j" * 16, SECOND.id, OffsetAndEpoch(200, 1009), b"s" * 32)


def is_accepted(named: Uuid, found: LogIncarnation) -> bool:
    try:
        check_incarnation(HOME, named, (VotersAt(7, (), incarnation=found),))
    except IdentityError:
        return False
    return True


@pytest.mark.parametrize(
    ("named", "found"),
    [
        (ZERO_UUID, FIRST_INCARNATION),
        (SECOND.id, SECOND),
        # A new node that still copies the history before its incarnation.
        (SECOND.id, FIRST_INCARNATION),
        (THIRD.id, FIRST_INCARNATION),
        (THIRD.id, SECOND),
    ],
)
def test_a_log_of_its_own_or_of_an_earlier_incarnation(named: Uuid, found: LogIncarnation) -> None:
    assert is_accepted(named, found)


@pytest.mark.parametrize(
    ("named", "found"), [(ZERO_UUID, SECOND), (SECOND.id, THIRD), (ZERO_UUID, THIRD)]
)
def test_an_interrupted_recovery_is_refused_by_name(named: Uuid, found: LogIncarnation) -> None:
    with pytest.raises(IdentityError, match="repeat the same command") as refused:
        check_incarnation(HOME, named, (VotersAt(7, (), incarnation=found),))
    assert uuid_to_text(found.id) in str(refused.value)
    assert "meta.properties" in str(refused.value)
