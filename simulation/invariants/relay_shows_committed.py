"""A relay serves committed records only (ADR 27)."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Message
from quorum.log.layout import segment_path
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen


class RelayShowsCommitted(Invariant):
    """Records, watermark and divergence points in its responses are below its high watermark."""

    name = "relay-shows-committed"
    sent_kinds = (FetchResponse,)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is not FetchResponse or not message.path:
            return
        high_watermark = seen.replica.node.high_watermark
        batches = self.run_observer.split(message.records) if message.records else []
        ends = [message.high_watermark, *(batch.end_offset for batch in batches)]
        if message.diverging is not None:
            ends.append(message.diverging.offset)
        self.require(
            max(ends) <= high_watermark,
            "a relay serves more than it knows to be committed",
            relay=seen.id,
            to=to,
            shown_to=max(ends),
            high_watermark=high_watermark,
        )
        committed = self.run_observer.committed
        for batch in batches:
            known = self.run_observer.batches.get((batch.end_offset, batch.epoch))
            self.require(
                batch.end_offset > committed.end_offset
                or (
                    known is not None
                    and known.content == batch.content
                    and committed.chain_at(batch.end_offset) is not None
                )
                or _has_corrupt_log(seen),
                "a relay serves another history",
                relay=seen.id,
                to=to,
                end_offset=batch.end_offset,
                epoch=batch.epoch,
            )


def _has_corrupt_log(seen: Seen) -> bool:
    """Return whether bits have flipped in its log since; whoever reads them must detect it."""
    stores = seen.replica.stores
    return any(
        seen.is_corrupt(segment_path(stores.directory, base)) for base in stores.log.segment_bases
    )
