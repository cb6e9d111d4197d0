"""What an error was raised from, as pure and as compiled code keep it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.errors import QuorateError, StorageError, cause_of
from quorum.log.directory_lock import DirectoryLock


def test_the_cause_is_found_in_the_form_of_this_run(tmp_path: Path) -> None:
    """Method: a module that is compiled raises from an error of the operating system."""
    with pytest.raises(StorageError) as caught:
        DirectoryLock(tmp_path / "missing")
    assert isinstance(cause_of(caught.value), FileNotFoundError)


def test_the_cause_is_found_where_only_the_context_is_kept() -> None:
    """Compiled code leaves an error so."""
    error = QuorateError("compiled")
    error.__context__ = handled = OSError("handled")
    assert cause_of(error) is handled


def test_an_error_from_none_has_no_cause() -> None:
    error = QuorateError("pure")
    error.__context__, error.__suppress_context__ = OSError("handled"), True
    assert cause_of(error) is None
    assert cause_of(QuorateError("first")) is None
