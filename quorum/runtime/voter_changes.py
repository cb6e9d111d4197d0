"""Changes of the voter set that callers on this node wait for: a token each, and its answer.

See: ``quorum.core.contract.local_events`` for what may be asked, ``VoterChangeAnswered`` for what
it means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count

from quorum.core.contract.local_events import AddVoter, LocalEvent, RemoveVoter, UpdateVoter
from quorum.core.contract.output import VoterChangeAnswered
from quorum.types import ReplicaKey, Voter

OnAnswer = Callable[[VoterChangeAnswered], None]


class VoterChanges:
    """Asks the core and remembers who waits. Owned by the driver's thread.

    Every call is answered exactly once, perhaps before it returns: by the leader's verdict, by
    its time limit, or by the end of its leadership.
    """

    def __init__(self, on_local_event: Callable[[LocalEvent], None]) -> None:
        self._on_local_event = on_local_event
        self._tokens = count(1)
        self._waiting: dict[int, OnAnswer] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(
        self,
        voter: Voter,
        on_answer: OnAnswer,
        *,
        ack_when_committed: bool = True,
        timeout_ms: int = 0,
        readmit: bool = False,
    ) -> None:
        """Let ``voter`` vote; ``readmit`` lets in one that was removed before."""
        token = self._remember(on_answer)
        self._on_local_event(AddVoter(token, voter, ack_when_committed, timeout_ms, readmit))

    def remove(self, key: ReplicaKey, on_answer: OnAnswer, *, timeout_ms: int = 0) -> None:
        """Let ``key`` vote no longer."""
        self._on_local_event(RemoveVoter(self._remember(on_answer), key, timeout_ms))

    def update(self, voter: Voter, on_answer: OnAnswer, *, timeout_ms: int = 0) -> None:
        """Give a voter new endpoints and versions."""
        self._on_local_event(UpdateVoter(self._remember(on_answer), voter, timeout_ms))

    def answered(self, answer: VoterChangeAnswered) -> None:
        """Pass on what the core said; the driver calls this."""
        on_answer = self._waiting.pop(answer.token, None)
        if on_answer is not None:
            on_answer(answer)

    def _remember(self, on_answer: OnAnswer) -> int:
        token = next(self._tokens)
        self._waiting[token] = on_answer
        return token


async def answer_of(ask: Callable[[OnAnswer], None]) -> VoterChangeAnswered:
    """Ask and wait, on the driver's event loop.

    ``await answer_of(lambda on_answer: changes.remove(key, on_answer))``. A caller that is
    cancelled stops waiting; the change goes on.
    """
    future: asyncio.Future[VoterChangeAnswered] = asyncio.get_running_loop().create_future()

    def settle(answer: VoterChangeAnswered) -> None:
        if not future.done():
            future.set_result(answer)

    ask(settle)
    return await future
