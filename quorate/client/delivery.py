"""Whether a request that may be sent only once has been sent.

gRPC does not say of a failed call whether its request left this machine. So the connection is made
before the call begins: until then nothing can have been sent. A call whose token the program gives
is not sent before it has that.
"""

from __future__ import annotations

import asyncio
from typing import Final

import grpc

from quorate.client.channels import Nodes
from quorate.client.errors import ClientError, RefusedError, UnavailableError
from quorate.client.reach import CONNECT_SECONDS_MAX
from quorum.v1 import common_pb2

_NOT_TAKEN: Final = frozenset(
    {
        common_pb2.ERROR_CODE_NOT_LEADER_OR_FOLLOWER,
        common_pb2.ERROR_CODE_NOT_CONTROLLER,
        common_pb2.ERROR_CODE_UNKNOWN_LEADER_EPOCH,
        # A stopping node answers so before it begins anything.
        common_pb2.ERROR_CODE_BROKER_NOT_AVAILABLE,
    }
)
"""Nothing was done, and another node may do it, or the same one later."""
_POLL_SECONDS: Final = 0.005
"""How often a connection in the making is looked at: gRPC's own wait for it cannot be cancelled."""


class NotSentError(UnavailableError):
    """There was no connection to send a request over, or no token to send with it."""


class Delivery:
    """One request, over all nodes that it is sent to."""

    def __init__(self) -> None:
        self.may_be_taken = False
        """Whether it was sent, and the node that got it has not refused it."""
        self._nodes: Nodes | None = None
        self._tokens_before = -1
        """How many calls had got the program's token before this one."""

    async def begin(self, nodes: Nodes, address: str, *, seconds: float) -> float:
        """Connect to the node and return the seconds left; now the request counts as sent.

        All takes at most ``seconds``: the connection, ``CONNECT_SECONDS_MAX`` of them if other
        nodes are known, and the proof of a password.

        Raises:
            NotSentError: There is no connection, or the node gave no token for the password.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        reach = min(seconds, CONNECT_SECONDS_MAX) if len(nodes.addresses) > 1 else seconds
        try:
            async with asyncio.timeout(reach):
                await _connected(nodes, address)
        except TimeoutError:
            raise NotSentError(f"no connection to {address} in {reach:.3g} s") from None
        try:
            async with asyncio.timeout_at(deadline):
                await nodes.prove(address)
        except TimeoutError:
            raise NotSentError(f"{address} gave no token in {seconds:.3g} s") from None
        except (ClientError, OSError) as error:
            raise NotSentError(f"{address} took no proof of the password: {error}") from error
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise NotSentError(f"connected to {address} too late")
        if nodes.given_token is not None:
            self._nodes, self._tokens_before = nodes, nodes.given_token.count
        self.may_be_taken = True
        return left

    def check_token(self, failure: UnavailableError) -> None:
        """Find out whether the call failed without its token; it was not sent then.

        If any call has got the token since this one began, this one counts as sent.

        Raises:
            NotSentError: It did, and why the program gave no token.
        """
        tokens = None if self._nodes is None else self._nodes.given_token
        if tokens is not None and tokens.count == self._tokens_before:
            self.may_be_taken = False
            if tokens.lack:
                raise NotSentError(f"the call got no token: {tokens.lack}") from failure
            # The connection went away before gRPC asked for one, or the token came too late.
            raise NotSentError(f"the call was not sent: {failure}") from failure

    def may_repeat(self, failure: ClientError) -> bool:
        """Whether the request may be sent again after this failure of it.

        Any refusal shows that it was not taken.
        """
        if not isinstance(failure, RefusedError):
            return isinstance(failure, NotSentError)
        self.may_be_taken = False
        return failure.code in _NOT_TAKEN


async def _connected(nodes: Nodes, address: str) -> None:
    """Wait for a connection.

    Raises:
        NotSentError: The node refuses the connection.
    """
    channel = nodes.node(address).channel
    while True:
        state = channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            return
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            raise NotSentError(f"cannot connect to {address}")
        await asyncio.sleep(_POLL_SECONDS)
