"""Bearer tokens: what a caller without a certificate proves its name with, call by call.

A token that this node gave says which credential it was given for. It is signed with a key that
only this process has, so that nothing needs to be stored and a stop ends all tokens. Other tokens
are verified by a ``TokenVerifier``, if the node has one.
"""

from __future__ import annotations

import binascii
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Protocol, TypeAlias

import msgpack

from quorate.services.errors import RequestRefusedError
from quorum.errors import ErrorCode
from statemachine.records import UserScramCredentialRecord
from statemachine.sections.security import SecurityDelta, SecurityImage

AUTHORIZATION: Final = "authorization"
"""Key of the metadata that carries a token."""
TOKEN_BYTES_MAX: Final = 8 << 10
TOKENS_KEPT_MAX: Final = 1_000
"""Tokens whose verification is remembered; beyond that all are forgotten."""
_SCHEME: Final = "bearer "
_OURS: Final = "quorate."
_MAC_BYTES: Final = 32

Security: TypeAlias = SecurityImage | SecurityDelta
"""The credentials and ACLs that something is checked on."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who a valid token names, and whether it still does."""

    name: str
    """As ACLs have it, without ``User:``."""
    audit_name: str
    """As the audit trail has it: how the caller proved its name, and the name."""
    problem: Callable[[Security], str]
    """Why the token is not valid on a state any more, as a sentence; empty while it is."""


class TokenVerifier(Protocol):
    """Verifies the tokens of others."""

    def session(self, token: str) -> Session:
        """Return who a token names.

        Raises:
            RequestRefusedError: SASL_AUTHENTICATION_FAILED, the token is not valid.
        """


def refused(why: str) -> RequestRefusedError:
    """Return the refusal of a caller that has not proved who it is."""
    return RequestRefusedError(ErrorCode.SASL_AUTHENTICATION_FAILED, why)


@dataclass(slots=True)
class Tokens:
    """Gives tokens for credentials, and says whose any token is. Owned by the event loop."""

    lifetime_s: float
    now_s: Callable[[], float]
    """Monotonic."""
    others: TokenVerifier | None = None
    """Verifies tokens that are not ours; None refuses them."""
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(_MAC_BYTES), repr=False)
    _known: dict[str, Session] = field(default_factory=dict, repr=False)

    def give(self, credential: UserScramCredentialRecord) -> str:
        """Return a new token for the user of a credential, which it has proved."""
        content = (
            credential.name,
            credential.mechanism,
            self.now_s() + self.lifetime_s,
            _fingerprint(credential),
        )
        data: bytes = msgpack.packb(content)
        return _OURS + urlsafe_b64encode(self._mac(data) + data).rstrip(b"=").decode("ascii")

    def session(self, metadata: Any, security: Security) -> Session | None:
        """Return whose token a call carries; None if it carries none.

        Raises:
            RequestRefusedError: SASL_AUTHENTICATION_FAILED, the token is not valid.
        """
        token = _token_in(metadata)
        if token is None:
            return None
        found = self._known.get(token)
        if found is None:
            if len(self._known) >= TOKENS_KEPT_MAX:
                self._known.clear()
            found = self._known[token] = self._verified(token)
        if problem := found.problem(security):
            self._known.pop(token, None)
            raise refused(problem)
        return found

    def _verified(self, token: str) -> Session:
        if len(token) > TOKEN_BYTES_MAX:
            raise refused("the token is too long")
        if token.startswith(_OURS):
            return self._own(token.removeprefix(_OURS))
        if self.others is None:
            raise refused("the token is not of this node, which accepts no others")
        return self.others.session(token)

    def _own(self, text: str) -> Session:
        try:
            data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except (binascii.Error, ValueError):
            data = b""
        mac, content = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(content)):
            raise refused("the token is not of this node, or it has restarted: authenticate again")
        name, mechanism, expires_s, fingerprint = msgpack.unpackb(content)

        def problem(security: Security) -> str:
            if self.now_s() >= expires_s:
                return "the token has expired: authenticate again"
            credential = security.scram.get((name, mechanism))
            if credential is None or _fingerprint(credential) != fingerprint:
                return "the user's password was changed or removed: authenticate again"
            return ""

        return Session(name, f"scram:{name}", problem)

    def _mac(self, data: bytes) -> bytes:
        mac = blake2b(data, key=self._key, digest_size=_MAC_BYTES, person=b"quorate token")
        return mac.digest()


def _fingerprint(credential: UserScramCredentialRecord) -> bytes:
    keys = credential.salt + credential.stored_key + credential.server_key
    return blake2b(keys, digest_size=16, person=b"quorate scram").digest()


def _token_in(metadata: Any) -> str | None:
    """Return the token of a call's metadata; None without one.

    Raises:
        RequestRefusedError: There is an authorization of another scheme, or more than one.
    """
    found = [value for key, value in metadata or () if key == AUTHORIZATION]
    if not found:
        return None
    text = found[0]
    if len(found) > 1 or not isinstance(text, str) or not text.lower().startswith(_SCHEME):
        raise refused("the authorization is no single bearer token")
    return text[len(_SCHEME) :].strip()
