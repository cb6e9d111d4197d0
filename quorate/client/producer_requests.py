"""Requests for producers, and how long a refusal of one counts.

A client that may change nothing gets no producer, and that says nothing about a command. So its
commands are evaluated as dry runs, which need none, and each ends with its own refusal. The refusal
of the producer is remembered, because the node counts each one and writes it to its audit log: new
commands are dry runs from the start. If the node does not deny one of them, the client has got
rights, and a producer is requested for it.

Runs on the loop of its writer; the time is an argument.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from quorate.client.errors import RefusedError
from quorate.client.open_commands import OpenCommands
from quorate.client.pending import Pending, PendingProducerSession
from quorate.client.producer_sessions import ProducerSession, ProducerSessions
from quorate.client.results.commands import InitProducerIdResult
from quorum.v1 import common_pb2
from quorum.v1.commands_pb2 import Command

DENIAL_SECONDS: Final = 30.0
"""How long a refusal of a producer counts for new commands."""
RETRY_SECONDS: Final = 1.0
"""The same where no dry run shows what the client may do: a named or an ordered client has none,
and the node may refuse the producer alone."""
_DENIED: Final = frozenset(
    {
        common_pb2.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED,
        common_pb2.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED,
        common_pb2.ERROR_CODE_GROUP_AUTHORIZATION_FAILED,
        common_pb2.ERROR_CODE_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class ProducerRequests:
    """The requests of one client for producers, and the commands that get none."""

    def __init__(self, producers: ProducerSessions[Pending], commands: OpenCommands) -> None:
        self.window = 1
        """Commands that a producer takes at a time, as the node says."""
        self._producers = producers
        self._commands = commands
        self._denial: RefusedError | None = None
        self._denied_at = -math.inf
        self._refused_alone_at = -math.inf
        """When the node last refused a producer, and not the command that needed it."""

    @property
    def _is_single(self) -> bool:
        return bool(self._producers.name) or self._producers.is_ordered

    def missing(self, loop: asyncio.AbstractEventLoop) -> list[Pending]:
        """Return the requests to be sent now, for the commands that wait for a producer."""
        producers = self._producers
        count = producers.wanted(len(self._commands.fresh), self.window)
        if not len(producers):
            # Whether the client gets any is not known: it is refused once, not for each.
            count = min(count, max(0, 1 - producers.opening))
        producers.opening += count
        return [
            Pending(
                Command(init_producer_id=producers.request()),
                loop.create_future(),
                math.inf,
                0,
                is_init=True,
            )
            for _ in range(count)
        ]

    def received(self, found: InitProducerIdResult) -> None:
        """Use a producer that was received."""
        self._denial = None
        self._refused_alone_at = -math.inf
        session: PendingProducerSession = ProducerSession(
            found.producer_id, found.producer_epoch, window=self.window
        )
        self._producers.add(session)

    def refused(self, refusal: RefusedError, now: float) -> None:
        """End all commands that wait for a producer, which the client may not have.

        They become dry runs, and end as such. Writes of a named or an ordered client depend on each
        other, and end at once.
        """
        commands = self._commands
        is_denied = refusal.code in _DENIED
        if is_denied:
            self._denial, self._denied_at = refusal, now
        if not is_denied or self._is_single:
            commands.fail_fresh(refusal)
            return
        for pending in [each for each in commands.fresh if each.has_number]:
            if not pending.deny(refusal):
                commands.fresh.remove(pending)
                commands.fail(pending, refusal)

    def presume(self, pending: Pending, now: float) -> None:
        """Make a new command a dry run if a producer was refused lately, or end it."""
        denial = self._denial
        if denial is None or not pending.has_number:
            return
        if now >= self._denied_at + (RETRY_SECONDS if self._is_single else DENIAL_SECONDS):
            self._denial = None
        elif self._is_single:
            self._commands.fail(pending, denial)
        else:
            pending.deny(denial, is_presumed=True)

    def end_dry_run(self, pending: Pending, refusal: RefusedError | None, now: float) -> None:
        """End a command without a producer, by the answer to its dry run; None: it is allowed.

        If a producer was refused before the command and the node does not deny the command, it
        is not ended but sent, under a producer.
        """
        if refusal is None or refusal.code not in _DENIED:
            if not pending.is_presumed:
                self._refused_alone_at = now
            elif now >= self._refused_alone_at + RETRY_SECONDS:
                self._denial = None
                pending.ask_again()
                self._commands.fresh.append(pending)
                return
        error = refusal or pending.denial
        if error is not None:
            self._commands.fail(pending, error)
