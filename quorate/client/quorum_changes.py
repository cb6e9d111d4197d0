"""Carries out a change of the quorum exactly once, also when the leader changes meanwhile.

A change is sent to one leader at a time. Who does not lead says so, and nothing has happened; an
answer that never came is looked up: the voter set, or who leads, of a leader that has committed all
it had when it was asked shows whether the change took place. If it did not it is sent again, which
is harmless: a change names the replica by its disk, so that a late copy finds it done or refused.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from quorate.client.caller import ATTEMPT_SECONDS_MIN, BACKOFF_SECONDS, Caller
from quorate.client.delivery import Delivery
from quorate.client.errors import ClientError, OutcomeUnknownError, RefusedError, UnavailableError
from quorate.client.message_value import MessageValue
from quorate.client.results.admin import DescribeQuorumResponse
from quorum.v1 import common_pb2

_DONE_BEFORE = frozenset(
    {common_pb2.ERROR_CODE_DUPLICATE_VOTER, common_pb2.ERROR_CODE_VOTER_NOT_FOUND}
)
"""Refusals that a repeat may get if the first copy was applied."""


Answer = TypeVar("Answer", bound=MessageValue)


@dataclass(frozen=True, slots=True)
class QuorumChange(Generic[Answer]):
    """One change: how it is asked for, and how to see that it took place."""

    answer: type[Answer]
    method: str
    request: Callable[[DescribeQuorumResponse], Message]
    """In view of the quorum as it was described last."""
    answer_from: Callable[[DescribeQuorumResponse], Answer | None]
    """The answer that got lost, when the quorum is as the change would have it."""


class QuorumChanges:
    """Carries changes out, one call each. Owned by one client, on its event loop.

    Args:
        describe: The leader's view of the quorum, or another node's if there is no leader.
    """

    def __init__(
        self,
        caller: Caller,
        describe: Callable[[], Awaitable[DescribeQuorumResponse]],
        *,
        rng: random.Random,
    ) -> None:
        self._caller = caller
        self._describe = describe
        self._rng = rng
        self._open: list[_Attempts[Any]] = []
        self._was_one_in_doubt = False

    @property
    def is_in_doubt(self) -> bool:
        """Whether a change was sent whose outcome is not known; also one that was cancelled."""
        return self._was_one_in_doubt or any(each.is_in_doubt for each in self._open)

    async def carry_out(self, change: QuorumChange[Answer], timeout_seconds: float) -> Answer:
        """The leader's answer; one put together from the quorum when the leader's got lost.

        Raises:
            RefusedError: It was refused, and has not taken place.
            UnavailableError: No leader took it in time: it has not taken place.
            OutcomeUnknownError: It was sent, and its outcome could not be found out.
        """
        attempt = _Attempts(self._caller, change, timeout_seconds)
        self._open.append(attempt)
        try:
            while True:
                async with asyncio.timeout_at(attempt.deadline):
                    seen = await self._seen(attempt)
                    answer = change.answer_from(seen) if attempt.must_look else None
                # Ended by gRPC and not by our clock: only gRPC knows whether a call whose time is
                # over was sent.
                if answer is not None or (answer := await attempt.send(seen)) is not None:
                    attempt.is_answered = True
                    return answer
                async with asyncio.timeout_at(attempt.deadline):
                    await self._pause()
        except (TimeoutError, UnavailableError) as error:
            raise attempt.failure(timeout_seconds) from (attempt.last or error)
        finally:
            self._open.remove(attempt)
            self._was_one_in_doubt = self._was_one_in_doubt or attempt.is_in_doubt

    async def _seen(self, attempt: _Attempts[Any]) -> DescribeQuorumResponse:
        """Return the quorum as it is, or as it has settled if the change is to be looked up in it.

        Raises:
            OutcomeUnknownError: Looking was refused, and the change may have been taken.
            ClientError: Looking failed otherwise.
        """
        try:
            return await (self._settled() if attempt.must_look else self._describe())
        except UnavailableError:
            raise
        except ClientError as error:
            if not attempt.is_in_doubt:
                raise
            raise attempt.unknown(error) from error

    async def _settled(self) -> DescribeQuorumResponse:
        """Return the quorum at a moment after this call: committed, and without a pending change.

        A leader commits in the order of its log. So when its high watermark reaches the log end of
        an earlier answer, every change before that answer is committed, or never will be.
        """
        mark: DescribeQuorumResponse | None = None
        while True:
            seen = await self._describe()
            if seen.pending_change or not seen.is_leader:
                mark = None
            elif mark is None or mark.leader_epoch != seen.leader_epoch:
                mark = seen
            if mark is not None and seen.high_watermark >= mark.log_end_offset:
                return mark
            await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(self._rng.uniform(*BACKOFF_SECONDS))


class _Attempts(Generic[Answer]):
    """One change as far as it has got."""

    def __init__(
        self, caller: Caller, change: QuorumChange[Answer], timeout_seconds: float
    ) -> None:
        self._caller = caller
        self._change = change
        self.deadline = asyncio.get_running_loop().time() + timeout_seconds
        self._fenced_epoch = -1
        self._was_done_before = False
        self._was_in_doubt = False
        """Whether it may have been taken when it was sent before."""
        self._delivery = Delivery()
        """Of the last time that it was sent."""
        self.must_look = False
        """It may be as wanted already, by us or without us."""
        self.is_answered = False
        self.last: ClientError | None = None

    @property
    def is_in_doubt(self) -> bool:
        """Whether it was sent and may have been taken, and no answer says so."""
        return not self.is_answered and (self._was_in_doubt or self._delivery.may_be_taken)

    async def send(self, seen: DescribeQuorumResponse) -> Answer | None:
        """Ask the current leader; None if the outcome must be looked up, or the request repeated.

        Raises:
            RefusedError: The leader evaluated it.
            TimeoutError: No time is left, or too little to send it again.
        """
        left = self.deadline - asyncio.get_running_loop().time()
        if left <= 0 or (self.last is not None and left < ATTEMPT_SECONDS_MIN):
            raise TimeoutError
        self._was_in_doubt, self._delivery = self.is_in_doubt, Delivery()
        try:
            answer = await self._caller.call(
                "admin",
                self._change.method,
                self._change.request(seen),
                timeout_seconds=left,
                attempt_seconds=left,
                to_leader=True,
                delivery=self._delivery,
            )
        except RefusedError as error:
            self.last = error
            self.must_look = self.is_in_doubt
            if self._is_fenced_anew(error, seen) or self._may_be_done(error):
                self.must_look = True
                return None
            raise
        except (UnavailableError, OutcomeUnknownError) as error:
            self.last = error
            self.must_look = self.is_in_doubt
            return None
        return self._change.answer.of(answer)

    def _is_fenced_anew(self, error: RefusedError, seen: DescribeQuorumResponse) -> bool:
        """Whether another leader was elected since the quorum was described."""
        is_fenced = error.code == common_pb2.ERROR_CODE_FENCED_LEADER_EPOCH
        is_new = seen.leader_epoch > self._fenced_epoch
        self._fenced_epoch = seen.leader_epoch
        return is_fenced and is_new

    def _may_be_done(self, error: RefusedError) -> bool:
        """Whether an earlier copy may be why this one is refused; that is looked up once."""
        is_first, self._was_done_before = not self._was_done_before, True
        return self.is_in_doubt and is_first and error.code in _DONE_BEFORE

    def unknown(self, refusal: ClientError) -> OutcomeUnknownError:
        """What to say when the quorum may not be looked at."""
        return OutcomeUnknownError(
            f"{self._change.method}: no answer to it, and it cannot be looked up: {refusal}"
        )

    def failure(self, seconds: float) -> ClientError:
        """What to say when the time is over."""
        missing = "answer to it" if self.is_in_doubt else "leader took it"
        text = f"{self._change.method}: no {missing} in {seconds:g} s"
        if self.last is not None:
            text += f": {self.last}"
        return OutcomeUnknownError(text) if self.is_in_doubt else UnavailableError(text)
