"""Every kind of caller at every listener calls every method of the table of roles.

``test_roles.py`` has the table, and proves that it is complete.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from quorate.services.roles import RULES, Role
from quorum.transport.security import TlsFiles
from tests.support.bound_node import bound_node, is_refused_by_role
from tests.support.certificates import authority, caller, node
from tests.support.revoked_list import write_list

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")

RAFT: Final = "/quorum.v1.RaftService/"
Outcome = tuple[grpc.StatusCode, str]
NOT_SERVED: Final[Outcome] = (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
CERTIFICATES: Final = {
    Role.VOTER: "DNS:node-2.quorum.test",
    Role.OBSERVER: "DNS:observer-3.quorum.test",
    Role.CLIENT: "DNS:app.test",
    Role.OPERATOR: "DNS:admin.test",
}
TOKENS: Final = {Role.CLIENT: "node-2.quorum.test", Role.OPERATOR: "admin.test"}
"""Users; a name as in a node's certificate makes nobody a node."""


def outcome(channel: grpc.Channel, method: str, metadata: Any) -> Outcome:
    """Call a method with an empty message; return OK if it answers anything."""
    call = channel.unary_stream(method)(b"", timeout=60, metadata=metadata)
    try:
        next(call, None)
    except grpc.RpcError as error:
        return error.code(), str(error.details())
    finally:
        call.cancel()
    return grpc.StatusCode.OK, ""


def has_role(role: Role) -> Callable[[str, Outcome], bool]:
    """Whether a method that is served was refused for its role, or was not, as the table says."""

    def check(method: str, found: Outcome) -> bool:
        is_refused = is_refused_by_role(found[1], method)
        return found != NOT_SERVED and is_refused is (role not in RULES[method].roles)

    return check


def is_cut(_method: str, found: Outcome) -> bool:
    """There is no connection, so nothing is known about methods."""
    return found[0] is grpc.StatusCode.UNAVAILABLE


def is_revoked(_method: str, found: Outcome) -> bool:
    return found == (grpc.StatusCode.UNAUTHENTICATED, "the certificate is revoked")


def credentials_of(files: TlsFiles, *, authorities: Path | None = None) -> grpc.ChannelCredentials:
    paths = (authorities or files.authorities, files.key, files.certificate)
    return grpc.ssl_channel_credentials(*(each.read_bytes() for each in paths))


def signed_tokens(folder: Path) -> dict[Role, str]:
    """Write the keys that a node verifies with; return a token for each role that one can have."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = json.loads(ECAlgorithm.to_jwk(key.public_key()))
    keys = {"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]}
    (folder / "jwks.json").write_text(json.dumps(keys))
    claims = {"iss": "https://login.test", "aud": "quorate", "exp": 2**33}
    return {
        role: jwt.encode({**claims, "sub": name}, key, algorithm="ES256", headers={"kid": "one"})
        for role, name in TOKENS.items()
    }


def test_every_caller_at_every_listener(tmp_path: Path) -> None:
    """A listener serves its services only; a caller that TLS refuses reaches none of them."""
    authority(tmp_path, "ours")
    authority(tmp_path, "theirs")
    server = node(tmp_path, "ours", "n1", "DNS:node-1.quorum.test")
    shown = {
        role: credentials_of(caller(tmp_path, "ours", role.value, name))
        for role, name in CERTIFICATES.items()
    }
    lost = caller(tmp_path, "ours", "lost", "DNS:lost.test")
    stranger = caller(tmp_path, "theirs", "stranger", "DNS:admin.test")
    nobody = grpc.ssl_channel_credentials(server.authorities.read_bytes())
    tokens = signed_tokens(tmp_path)
    with_certificate: list[tuple[str, grpc.ChannelCredentials, Any]] = [
        *((role.value, shown[role], has_role(role)) for role in shown),
        ("revoked operator", credentials_of(lost), is_revoked),
        ("of another authority", credentials_of(stranger, authorities=server.authorities), is_cut),
        ("without certificate", nobody, is_cut),
    ]
    wrong: list[Any] = []
    calls = 0

    async def check(where: str, address: str, who: str, right: Any, **how: Any) -> None:
        nonlocal calls
        metadata = how.get("metadata")
        with grpc.secure_channel(address, how["credentials"]) as channel:
            for method in RULES:
                found = await asyncio.to_thread(outcome, channel, method, metadata)
                is_served = method.startswith(RAFT) is (where == "peer") or right is is_cut
                is_right = right(method, found) if is_served else found == NOT_SERVED
                calls += 1
                if not is_right:
                    wrong.append((where, who, method, found))

    async def run() -> None:
        security = {
            "channelz": True,
            "operators": ("User:admin.test", "User:lost.test"),
            "jwt_jwks_file": tmp_path / "jwks.json",
            "jwt_issuer": "https://login.test",
            "jwt_audience": "quorate",
        }
        crl = write_list(tmp_path, lost.certificate, stem="ours")
        async with bound_node(tmp_path, server, crl=crl, has_peer_port=True, **security) as (
            client, sasl, made,
        ):  # fmt: skip
            for where, address in (("client", client), ("peer", made._config.listeners.peer)):
                for who, credentials, right in with_certificate:
                    await check(where, address, who, right, credentials=credentials)
            await check("sasl", sasl, "nobody", has_role(Role.UNKNOWN), credentials=nobody)
            for role, token in tokens.items():
                proof = {"metadata": [("authorization", f"Bearer {token}")]}
                right = has_role(role)
                await check("sasl", sasl, "token", right, credentials=nobody, **proof)
                # A token counts in place of the certificate beside it.
                voter = shown[Role.VOTER]
                await check("client", client, "token", right, credentials=voter, **proof)

    asyncio.run(run())
    assert wrong == []
    assert calls == len(RULES) * (2 * len(with_certificate) + 1 + 2 * len(tokens))
