"""The nodes that a client knows, one lasting connection to each, and the last known leader.

A node may come back with another address behind the same name. gRPC would connect to the address
it knows, wait for ``CONNECT_TIMEOUT_MS``, and only then look the name up again. So a channel that
has lost its connection is replaced by the next call, and the name of the new one is looked up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import grpc

from quorate.client.authenticator import Authenticator
from quorate.client.cluster import cluster_named
from quorate.client.errors import ClientError, NotServedError
from quorate.client.given_token import GivenToken
from quorate.client.limits import CLIENT_OPTIONS, RESOLUTION_PAUSE_MS
from quorate.client.newest_incarnation import NewestIncarnation
from quorate.client.results.errors import LeaderHint
from quorum.v1 import errors_pb2 as wire
from quorum.v1.admin_pb2_grpc import AdminServiceStub
from quorum.v1.metadata_pb2_grpc import MetadataServiceStub

ADDRESSES_MAX = 64
"""Maximum number of nodes remembered; further hints are ignored."""
REST_SECONDS = 30.0
"""After so long without a call, no more attempts are made to connect to a node. Longer than any
call may wait for its connection: the channel of one that waits must not end."""


class Node:
    """One node's channel and its two services."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.address = address
        self.asked_at = asyncio.get_running_loop().time()
        """When a call was last made, on the loop's clock."""
        self.was_connected = False
        """Whether an earlier call has found a connection."""
        self.channel = (
            grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
            if credentials is None
            else grpc.aio.secure_channel(address, credentials, options=CLIENT_OPTIONS)
        )
        # The generated stubs are untyped.
        self.metadata: Any = MetadataServiceStub(self.channel)  # type: ignore[no-untyped-call]
        self.admin: Any = AdminServiceStub(self.channel)  # type: ignore[no-untyped-call]

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as gRPC knows."""
        return self.channel.get_state() is grpc.ChannelConnectivity.READY

    @property
    def has_lost_connection(self) -> bool:
        """Whether there was a connection, and there is neither one nor an attempt to connect.

        A new channel is in the same state until its first call has begun.
        """
        unasked = asyncio.get_running_loop().time() - self.asked_at
        return (
            self.was_connected or unasked > RESOLUTION_PAUSE_MS / 1000
        ) and self.channel.get_state() is grpc.ChannelConnectivity.IDLE


class Nodes:
    """The known nodes; answers of nodes add addresses. Owned by one client, on its event loop."""

    def __init__(
        self,
        addresses: Sequence[str],
        credentials: grpc.ChannelCredentials | None = None,
        *,
        cluster_id: str = "",
        authenticator: Authenticator | None = None,
        given_token: GivenToken | None = None,
        prefers_sasl: bool = False,
    ) -> None:
        """``prefers_sasl``: leaders are followed to their listener for clients without a
        certificate, where they have one.
        """
        if isinstance(addresses, str):
            raise TypeError(f"addresses must be a list, as [{addresses!r}], not a single text")
        if not addresses:
            raise ValueError("a client needs at least one address")
        self.cluster_id = cluster_id
        """The id of the client's cluster; taken from the first answer if it is not given."""
        self._credentials = credentials
        self._authenticator = authenticator
        self.given_token = given_token
        """The program's own, which calls wait for; None: they carry none, or one for a password."""
        self._prefers_sasl = prefers_sasl
        self._nodes: dict[str, Node | None] = dict.fromkeys(addresses)
        self._rest_timer: asyncio.TimerHandle | None = None
        self.leader: str | None = None
        """Last known address of the leader."""
        self.leader_epoch = -1
        """The newest known epoch."""
        self.newest_incarnation = NewestIncarnation()
        """Of the log; this client neither reads nor writes an older one from then on."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every address known, those given first."""
        return tuple(self._nodes)

    def node(self, address: str) -> Node:
        """Return the node at an address; connecting begins with the first call."""
        loop = asyncio.get_running_loop()
        node = self._nodes.get(address)
        if node is None or node.has_lost_connection:
            node = self._nodes[address] = Node(address, self._credentials)
        node.asked_at = loop.time()
        node.was_connected = node.was_connected or node.is_connected
        if self._rest_timer is None:
            self._rest_timer = loop.call_later(REST_SECONDS, self._rest)
        return node

    def is_connected(self, address: str) -> bool:
        """Whether there is a connection to the node; a dead machine's may take a while to break."""
        node = self._nodes.get(address)
        return node is not None and node.is_connected

    async def prove(self, address: str) -> None:
        """Prove the password to the node now, as its next call would; nothing without a password.

        Raises:
            ClientError, OSError: The exchange failed.
        """
        if self._authenticator is not None:
            await self._authenticator.prepare(address)

    @property
    def lack(self) -> str:
        """What keeps calls from being sent, to be added to an error; empty if nothing does."""
        lack = "" if self.given_token is None else self.given_token.lack
        return lack and f": {lack}"

    def _rest(self) -> None:
        """Give up channels that cannot connect and that no call asks for.

        gRPC would repeat its attempts for as long as the channel exists. A channel ends with its
        last reference, and an open stream has none.
        """
        loop = asyncio.get_running_loop()
        self._rest_timer = None
        for address, node in self._nodes.items():
            if node is None or node.is_connected:
                continue
            if loop.time() - node.asked_at >= REST_SECONDS:
                self._nodes[address] = None
            elif self._rest_timer is None:
                self._rest_timer = loop.call_later(REST_SECONDS, self._rest)

    def stranger(
        self, metadata: Iterable[tuple[str, str | bytes]] | None, *, is_failure: bool = False
    ) -> str:
        """Return why the answer is refused, as a sentence; empty for a node of our cluster.

        The caller must discard such an answer: neither its data nor its epochs are of our cluster.
        A failure may be gRPC's own, which names no cluster.
        """
        named = cluster_named(metadata)
        if named == self.cluster_id or (is_failure and not named):
            return ""
        if not self.cluster_id:
            self.cluster_id = named
            return ""
        return f"answered by a node of cluster {named!r}, not of {self.cluster_id!r}"

    def learn(self, hint: LeaderHint | wire.LeaderHint | None) -> str | None:
        """Record the leader that an answer names.

        Returns:
            The leader's address if the hint names one that is worth following.
        """
        if hint is None or hint.leader_epoch < self.leader_epoch:
            return None
        self.leader_epoch = hint.leader_epoch
        address = (hint.sasl_address if self._prefers_sasl else "") or hint.address
        if not address:
            return None
        if address not in self._nodes and len(self._nodes) < ADDRESSES_MAX:
            self._nodes[address] = None
        if address not in self._nodes:
            return None
        self.leader = address
        return address

    def explained(self, address: str, error: ClientError) -> ClientError:
        """Return the error of a call with the address, where that is to blame.

        Or why the node refused the client's password before the call.
        """
        if isinstance(error, NotServedError):
            return NotServedError(address)
        if self._authenticator is None:
            return error
        return self._authenticator.explained(address, error)

    def is_served_elsewhere(self, error: ClientError, address: str, not_served: set[str]) -> bool:
        """Whether a call failed because of its address alone, which is added to ``not_served``."""
        if not isinstance(error, NotServedError):
            return False
        not_served.add(address)
        return not not_served.issuperset(self._nodes)

    def forgets_token(self, address: str, error: ClientError) -> bool:
        """Whether a call was refused for a token that the node knows no more: repeat the call."""
        return self._authenticator is not None and self._authenticator.forget(address, error)

    def accepted_by(self, address: str, epoch: int) -> None:
        """Record that a node accepted our write stream, so it leads."""
        self.leader = address
        self.leader_epoch = max(self.leader_epoch, epoch)

    async def close(self) -> None:
        """Close every connection."""
        if self._rest_timer is not None:
            self._rest_timer.cancel()
        if self._authenticator is not None:
            await self._authenticator.close()
        for node in self._nodes.values():
            if node is not None:
                await node.channel.close()
