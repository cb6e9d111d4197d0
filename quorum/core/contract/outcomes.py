"""Outcomes as enums: tests and metrics compare the members, log lines show their texts.

What differs from case to case (an offset, an error's name) is in the ``detail`` beside a member.
"""

from __future__ import annotations

from enum import StrEnum


class TransferOutcome(StrEnum):
    """How a leadership transfer ended."""

    SUPERSEDED = "superseded by a later epoch"
    """Another node campaigned, usually the target."""
    RESIGNED = "the leader resigned"
    NO_VOTER = "it is no longer a voter"
    NOT_CAUGHT_UP = "it did not reach the log end"
    NOT_ELECTED = "it was not elected"
    REFUSED = "it refused with"
    UNREACHABLE = "it cannot be reached"


class DownloadOutcome(StrEnum):
    """How the download of a checkpoint ended."""

    INSTALLED = "installed"
    NOT_NEEDED = "the log already reaches it"
    RECORDS_SERVED = "the leader has the records"
    SUPERSEDED = "superseded by"
    ANOTHER_FILE = "the leader has a different file"
    REFUSED = "refused with"
    REJECTED = "rejected:"
    """It was downloaded and is damaged."""
    UNUSABLE_VOTERS = "its voters are unusable:"


class DivergenceOutcome(StrEnum):
    """How a divergence about the log's history was resolved."""

    WON = "a majority holds what this replica holds"
    LOST = "a majority holds another history"
    UNDECIDED = "no majority holds the same history"
    EQUAL = "the histories are equal"
    NOT_COMPARABLE = "the digests are unknown"
    DAMAGED = "its own files are damaged"
    INTACT = "its own files are intact"
    CUT = "the log was truncated meanwhile"
    SILENT = "the peer does not answer"
