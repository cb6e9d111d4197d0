"""An observer's controller, fed with what the controller of a test commits. It has no log.

It is the production controller on a replica that does not lead: it applies batches and checkpoints.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from quorate.controller.config import ControllerConfig
from quorate.controller.controller import Controller
from quorum.batch import encode_batch, scan_batches
from quorum.control import SnapshotFooter, SnapshotHeader, encode_control_batch
from quorum.types import SnapshotId
from simulation.laboratory.controller import CLUSTER_ID
from statemachine.dump import dump_values
from statemachine.image import MetadataImage
from statemachine.machine import StateMachine


class FollowingController:
    """A controller that follows."""

    def __init__(self) -> None:
        self._checkpoints: dict[SnapshotId, list[bytes]] = {}
        self.controller = Controller(
            ControllerConfig(cluster_id=CLUSTER_ID),
            StateMachine(),
            rng=random.Random(1),
            open_checkpoint=self._checkpoints.__getitem__,
        )

    @property
    def end_offset(self) -> int:
        """What it has applied, exclusive."""
        return self.controller.image.provenance.end_offset

    def apply(self, batches: Sequence[bytes], up_to: int | None = None) -> None:
        """Apply the batches that are new to it, of those below ``up_to``, in one delivery."""
        data, end = b"", self.end_offset
        for batch in batches:
            (header,) = scan_batches(batch)
            if header.base_offset >= end and (up_to is None or header.end_offset <= up_to):
                data, end = data + batch, header.end_offset
        if data:
            self.controller.on_committed(data, end)

    def fetch_checkpoint(self, image: MetadataImage) -> None:
        """Load a checkpoint of an image, as one that is too far behind does."""
        at = image.provenance
        values = list(dump_values(image))
        snapshot_id = SnapshotId(at.end_offset, at.epoch)
        self._checkpoints[snapshot_id] = [
            encode_control_batch([SnapshotHeader(1)], base_offset=0, epoch=1, timestamp=1),
            encode_batch(values, base_offset=1, epoch=1, timestamp=1),
            encode_control_batch(
                [SnapshotFooter()], base_offset=1 + len(values), epoch=1, timestamp=1
            ),
        ]
        self.controller.on_snapshot(snapshot_id)
