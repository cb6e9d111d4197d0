"""A running replica for the services: implements ``quorate.services.ports.ServedNode``.

Commands submitted within one round of the event loop become one group: the first of them
schedules the replica's next turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from quorate.controller.requests import PendingCommand
from quorate.features import SUPPORTED_FEATURES
from quorate.replica.log_facts import LogFacts
from quorate.server.metering import CommandMeter
from quorate.server.read_gathering import ReadGathering
from quorate.server.snapshot_requests import create_snapshot
from quorate.server.tracing import CommandTracing
from quorate.services.ports import (
    Cancel,
    Leadership,
    Outcome,
    QuorumStatus,
    SnapshotMade,
    VoterChange,
)
from quorum.control_records import Origin
from quorum.core.contract.local_events import NO_TOKEN, TransferLeadership
from quorum.types import Endpoint, NodeId

if TYPE_CHECKING:
    from quorate.replica.replica import Replica
    from quorum.core.contract.freshness import Freshness
    from quorum.core.contract.output import RequestSettled
    from quorum.ports import Clock
    from quorum.runtime.driver import OperatorRequest
    from statemachine.image import MetadataImage
from statemachine.commands import FeatureRange

_WITHOUT_SASL: Final = 2
"""Most addresses of a node that has no listener for clients without a certificate."""


class ImageAge:
    """How old the published image is. Owned by the event loop.

    Invariant: the image contains everything acknowledged before ``_as_of_ms``, which never
    decreases.
    """

    def __init__(self) -> None:
        self._as_of_ms = -1

    def note(self, known: Freshness, applied_end: int) -> None:
        """Note how current the log is (``known``) and how much of it is in the image
        (``applied_end``).
        """
        if applied_end >= known.end_offset and known.as_of_ms > self._as_of_ms:
            self._as_of_ms = known.as_of_ms

    def at(self, now_ms: int) -> int:
        """Milliseconds since then; -1 when it was never known."""
        return max(0, now_ms - self._as_of_ms) if self._as_of_ms >= 0 else -1


class ReplicaNode(LogFacts):
    """Implements ``ServedNode``. Owned by the event loop.

    Args:
        client_address: Where clients reach this node.
        sasl_address: Where clients without a certificate reach it; empty if nowhere.
        guard: Runs a call so that what escapes ends the process.
        check_quorum_ms: Time without Fetches of a majority after which this node, as leader,
        resigns.
        tracing: Opens spans of commands; None: no traces.
    """

    def __init__(
        self,
        replica: Replica,
        *,
        clock: Clock,
        client_address: str,
        sasl_address: str = "",
        guard: Callable[[Callable[[], None]], None],
        meter: CommandMeter,
        check_quorum_ms: int,
        tracing: CommandTracing | None = None,
    ) -> None:
        super().__init__(replica)
        self._controller = replica.controller
        self._clock = clock
        self._client_address = client_address
        self._sasl_address = sasl_address
        self._guard = guard
        self._meter = meter
        self._tracing = tracing
        self._check_quorum_ms = check_quorum_ms
        self._loop = asyncio.get_running_loop()
        self._age = ImageAge()
        self._controller.subscribe(self._note_age)
        self._due_turn: asyncio.Handle | None = None
        self._reads = ReadGathering(self._loop, self._confirm_read)

    # ------------------------------------------------------------------ present state

    @property
    def node_id(self) -> NodeId:
        """This node."""
        return self._replica.key.id

    @property
    def cluster_id(self) -> str:
        """The cluster it belongs to."""
        return self._replica.stores.identity.cluster_id

    @property
    def supported_features(self) -> tuple[FeatureRange, ...]:
        """What this release can run with, by name."""
        return SUPPORTED_FEATURES

    @property
    def leadership(self) -> Leadership:
        """The leader of the current epoch, and where clients reach it as far as known."""
        leader_id = self._node.leader_id
        return Leadership(
            leader_id, self._node.epoch, self._address_of(leader_id), self._sasl_of(leader_id)
        )

    @property
    def can_write(self) -> bool:
        """Whether it leads and takes commands."""
        return self._node.can_write

    # ------------------------------------------------------------------ work

    def submit(self, commands: Sequence[PendingCommand]) -> None:
        """Give commands to the controller; they are evaluated at the next turn of the loop."""
        if self._tracing is not None:
            for pending in commands:
                self._tracing.begin(pending)
        self._controller.submit_all(commands)
        if self._due_turn is None:
            self._schedule_turn()

    def evaluate_submitted(self) -> None:
        """Evaluate what has been submitted now, before the next message is read."""
        if self._due_turn is not None:
            self._due_turn.cancel()
            self._turn()

    def confirm_read(self, on_outcome: Callable[[int | None], None], reads: int = 1) -> None:
        """Find a linearizable read position, from the leader if this node is not it."""
        self._reads.add(self._meter.timed(on_outcome), reads)

    def wait_applied(self, offset: int, on_applied: Callable[[], None]) -> Cancel:
        """Call back once the image contains everything below ``offset``; at once if it does."""
        if self._replica.driver.is_delivery_due:
            # Commits that were only gathering.
            self._guard(self._replica.deliver)
        return self._controller.wait_applied(offset, on_applied)

    def subscribe(self, on_published: Callable[[], None]) -> Cancel:
        """Call back whenever a newer image was published."""
        return self._controller.subscribe(lambda _: on_published())

    async def read_log(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from ``offset`` on; from the disk on another thread if need be."""
        found = self.reading(offset, max_bytes, end_offset)
        return found if isinstance(found, bytes) else await asyncio.to_thread(found)

    async def log_digest(self, offset: int) -> bytes:
        """Digest of everything below ``offset``, read on another thread; empty if unknown."""
        return await asyncio.to_thread(self.digest_reading(offset))

    async def checkpoint_image(self, at_least_offset: int) -> MetadataImage | None:
        """State of the lowest checkpoint at or above an offset, loaded on another thread."""
        return await asyncio.to_thread(self.checkpoint_reading(at_least_offset))

    def describe_quorum(self) -> QuorumStatus:
        """The voters, the observers and their progress."""
        node = self._node
        return QuorumStatus(
            node.voters,
            node.replicas(),
            node.tree(),
            node.removed_voters,
            node.pending_change,
            node.me.directory_id,
            self._replica.config.endpoints,
            node.chain.log_problem,
            self._check_quorum_ms,
            str(self._controller.fault or ""),
            node.replicas_ahead(),
            self._clock.wall_ms() - self._clock.now_ms(),
        )

    async def create_snapshot(self, *, dry_run: bool) -> SnapshotMade:
        """Write a checkpoint of the image as it is, unless there is one of its position."""
        return await create_snapshot(self._replica, dry_run=dry_run)

    async def transfer_leadership(self, target: NodeId, origin: Origin) -> Outcome:
        """Let ``target`` (``NO_NODE``: the furthest voter) take over; bounded in time."""
        return await self._ask(TransferLeadership(NO_TOKEN, target, origin))

    async def change_voters(self, change: VoterChange) -> Outcome:
        """Add, remove or update a voter; bounded in time."""
        return await self._ask(change)

    def age_ms(self) -> int:
        """``image`` holds everything acknowledged longer ago than this; -1 when not known."""
        self._note_age()
        return self._age.at(self._clock.now_ms())

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._clock.wall_ms()

    # ------------------------------------------------------------------ inside

    async def _ask(self, request: OperatorRequest) -> Outcome:
        """Pass a request to the core and wait for its one answer."""
        answered: asyncio.Future[Outcome] = self._loop.create_future()

        def settled(outcome: RequestSettled) -> None:
            # The call may have been cancelled meanwhile.
            if not answered.done():
                answered.set_result(Outcome(outcome.error, outcome.message, outcome.offset))

        self._guard(lambda: self._replica.ask(request, settled))
        return await answered

    def _confirm_read(self, on_outcome: Callable[[int | None], None]) -> None:
        self._controller.confirm_read(on_outcome)
        if self._due_turn is None:
            self._schedule_turn()

    def _schedule_turn(self) -> None:
        self._due_turn = self._loop.call_soon(self._turn)

    def _note_age(self, _: object = None) -> None:
        known = self._node.freshness(self._clock.now_ms())
        self._age.note(known, self._controller.image.provenance.end_offset)

    def _turn(self) -> None:
        self._due_turn = None
        self._guard(self._replica.turn)

    def _sasl_of(self, node_id: NodeId) -> str:
        if node_id == self.node_id:
            return self._sasl_address
        leader, endpoints = self._replica.driver.addresses.leader
        # Between the peers' and the clients'; see ``known_addresses.own_endpoints``.
        return endpoints[1] if leader == node_id and len(endpoints) > _WITHOUT_SASL else ""

    def _address_of(self, node_id: NodeId) -> str:
        if node_id == self.node_id:
            return self._client_address
        leader, endpoints = self._replica.driver.addresses.leader
        if leader == node_id and endpoints:
            return endpoints[-1]
        voter = next((each for each in self._node.voters if each.key.id == node_id), None)
        return _last_address(voter.endpoints) if voter is not None else ""


def _last_address(endpoints: tuple[Endpoint, ...]) -> str:
    # The client listener, where a node names one, comes behind the peers'.
    return endpoints[-1].address if endpoints else ""
