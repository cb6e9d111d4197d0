"""Whether the records of a Fetch answer can follow this log."""

from __future__ import annotations

from itertools import pairwise

from quorum.core.messages.received_records import ReceivedRecords
from quorum.core.state.core_state import CoreState
from quorum.core.voters.voter_set import VoterSet
from quorum.incarnation import can_follow


def problem_with_records(core: CoreState, records: ReceivedRecords) -> str:
    """Return why records cannot follow this log in this epoch; empty if they can."""
    log = core.log
    if records.base_offset != log.end_offset or records.end_offset <= records.base_offset:
        return (
            f"records [{records.base_offset}, {records.end_offset}) do not follow log end "
            f"{log.end_offset}"
        )
    if not records.epochs or records.epochs[0].start_offset != records.base_offset:
        return "records without the epoch of their first batch"
    epoch = records.epochs[0].epoch
    if epoch < log.end_epoch:
        return f"epoch {epoch} after epoch {log.end_epoch}"
    for before, entry in pairwise(records.epochs):
        epoch, offset = entry.epoch, entry.start_offset
        if epoch <= before.epoch or not before.start_offset < offset < records.end_offset:
            return f"epoch {epoch} at {offset} after epoch {before.epoch} at {before.start_offset}"
    if epoch > core.epoch:
        return f"epoch {epoch} in an answer of epoch {core.epoch}"
    at = max(records.base_offset - 1, core.voters.latest_offset)
    incarnation = core.voters.latest.incarnation
    for each in records.voters:
        if not at < each.offset < records.end_offset or not each.voters:
            return f"a voters record at {each.offset}"
        at = each.offset
        try:
            VoterSet(each.voters, each.removed)
        except ValueError as error:
            return f"a voters record at {each.offset}: {error}"
        if not can_follow(incarnation, each.incarnation):
            return f"a voters record at {each.offset} of another incarnation of the log"
        incarnation = each.incarnation
    return ""
