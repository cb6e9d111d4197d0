"""What a client proves who it is with, besides a certificate: a password, a token, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import grpc

from quorate.client.authenticator import Authenticator
from quorate.client.channels import Nodes
from quorate.client.credentials import DEFAULT_MECHANISM
from quorate.client.given_token import GivenToken


@dataclass(frozen=True, slots=True)
class Proof:
    """A user with a password, or a token; all empty: neither."""

    user: str = ""
    password: str = field(default="", repr=False)
    mechanism: str = DEFAULT_MECHANISM
    token: str | Callable[[], str] = field(default="", repr=False)


def nodes_for(
    addresses: Sequence[str],
    credentials: grpc.ChannelCredentials | None,
    proof: Proof,
    *,
    cluster_id: str,
) -> Nodes:
    """Return the nodes of a client that proves who it is.

    Raises:
        ValueError: The proof would travel in clear text, or is incomplete.
    """
    if not (proof.user or proof.password or proof.token):
        return Nodes(addresses, credentials, cluster_id=cluster_id)
    if credentials is None:
        raise ValueError("a password or token needs TLS: give credentials as well")
    if bool(proof.user) is not bool(proof.password):
        raise ValueError("user and password belong together")
    if proof.user and proof.token:
        raise ValueError("give a password or a token, not both")
    _keep_event_engine()
    authenticator, given_token = None, None
    plugin: grpc.AuthMetadataPlugin
    if proof.user:
        plugin = authenticator = Authenticator(
            credentials, user=proof.user, password=proof.password, mechanism=proof.mechanism
        )
    else:
        plugin = given_token = GivenToken(proof.token)
    calls = grpc.metadata_call_credentials(plugin)
    return Nodes(
        addresses,
        grpc.composite_channel_credentials(credentials, calls),
        cluster_id=cluster_id,
        authenticator=authenticator,
        given_token=given_token,
        prefers_sasl=True,
    )


@cache
def _keep_event_engine() -> None:
    """Keep gRPC's event engine for as long as the process lives.

    The engine ends with the last channel. That channel's ``close`` waits for the engine's threads
    and keeps the interpreter's lock meanwhile, and one of these threads needs that lock to free
    what gave calls their token: the whole process would hang (github.com/grpc/grpc/pull/42247). So
    there is a channel that is never closed, nor freed when the interpreter ends. It connects to
    nothing: a channel connects with its first call.
    """
    import ctypes  # Not every interpreter has it, and a client without a token needs none.

    channel = grpc.insecure_channel("localhost:0")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(channel))
