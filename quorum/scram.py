"""SCRAM (RFC 5802, RFC 7677): keys of a password, and both sides of one exchange. Pure.

As in Kafka, names and passwords are taken as UTF-8 bytes without SASLprep, and there is no channel
binding. Neither side ever sends a password. This module needs nothing but the standard library, so
that clients can use it.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Final, NamedTuple

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""Both are Kafka's bounds. A client refuses a server that asks for anything else."""
SALT_BYTES: Final = 32
"""Length of the salts that we make."""
SALT_BYTES_MAX: Final = 128
NAME_LENGTH_MAX: Final = 1024
"""Characters of a user's name, as of a principal in an ACL."""
MESSAGE_BYTES_MAX: Final = 16 << 10
"""Longest message of an exchange; four times the longest name, escaped."""
_NONCE_LENGTH_MAX: Final = 512
_NO_BINDING: Final = ("n", "y")
_REFUSED: Final = "e=invalid-proof"


class ScramError(Exception):
    """A message that no peer of this protocol sends, or a proof that is wrong."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One hash function. ``number`` is Kafka's, as in UserScramCredentialRecord."""

    name: str
    number: int
    hash_name: str

    @property
    def key_bytes(self) -> int:
        """Return the length of both keys."""
        return hashlib.new(self.hash_name).digest_size

    def hmac(self, key: bytes, message: bytes) -> bytes:
        """Return HMAC of ``message``."""
        return hmac.digest(key, message, self.hash_name)

    def hash(self, message: bytes) -> bytes:
        """Return the hash of ``message``."""
        return hashlib.new(self.hash_name, message).digest()


SHA_256: Final = Mechanism("SCRAM-SHA-256", 1, "sha256")
SHA_512: Final = Mechanism("SCRAM-SHA-512", 2, "sha512")
MECHANISMS: Final = {each.name: each for each in (SHA_256, SHA_512)}
"""By name."""


class Credential(NamedTuple):
    """What a server keeps of a password. It proves a client, and does not yield the password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class _Keys(NamedTuple):
    client: bytes
    stored: bytes
    server: bytes


def credential_of(
    mechanism: Mechanism, password: str, salt: bytes, iterations: int = ITERATIONS_MIN
) -> Credential:
    """Return the credential of a password. Takes milliseconds of the processor, on purpose."""
    keys = _keys(mechanism, password, salt, iterations)
    return Credential(salt, keys.stored, keys.server, iterations)


class ClientExchange:
    """A client's side: ``first``, ``final`` with the server's answer, ``verify`` with its last."""

    def __init__(self, mechanism: Mechanism, name: str, password: str, nonce: str) -> None:
        """``nonce``: printable ASCII without commas, at least 16 random bytes of it."""
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._first_bare = f"n={_escaped(name)},r={nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """Return the client's first message."""
        return f"n,,{self._first_bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client's last message, with the proof. Takes milliseconds.

        Raises:
            ScramError: The server's message is malformed, repeats another nonce, or asks for fewer
                iterations than are safe or more than are reasonable.
        """
        text = _text(server_first)
        fields = _fields(text, "rsi")
        nonce, salt = fields["r"], _bytes_of(fields["s"])
        iterations = _number(fields["i"])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("the server answered another exchange")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise ScramError(
                f"the server asks for {iterations} iterations, not {ITERATIONS_MIN} to "
                f"{ITERATIONS_MAX}"
            )
        without_proof = f"c={_base64(b'n,,')},r={nonce}"
        signed = f"{self._first_bare},{text},{without_proof}".encode()
        keys = _keys(self._mechanism, self._password, salt, iterations)
        self._signature = self._mechanism.hmac(keys.server, signed)
        proof = _xor(keys.client, self._mechanism.hmac(keys.stored, signed))
        return f"{without_proof},p={_base64(proof)}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the server knows the credential as well.

        Raises:
            ScramError: It does not, or it reports an error.
        """
        text = _text(server_final)
        if text.startswith("e="):
            raise ScramError(f"the server refused the exchange: {text[2:]}")
        shown = _bytes_of(_fields(text, "v")["v"])
        if not self._signature or not hmac.compare_digest(shown, self._signature):
            raise ScramError("the server does not know this user's credential")


class ServerExchange:
    """A server's side of one exchange: constructed with the client's first message.

    Life-cycle: ``name`` selects a credential, ``challenge`` answers it, ``verify`` ends it.
    """

    def __init__(self, mechanism: Mechanism, client_first: bytes, nonce: str) -> None:
        """Read the client's first message; ``nonce`` is the server's part.

        Raises:
            ScramError: It is malformed, asks for channel binding, or to act for somebody else.
        """
        self._mechanism = mechanism
        text = _text(client_first)
        binding, comma, rest = text.partition(",")
        acts_for, second, self._first_bare = rest.partition(",")
        if not (comma and second) or binding not in _NO_BINDING:
            raise ScramError("channel binding is not supported, or the message has no header")
        fields = _fields(self._first_bare, "nr")
        self.name = _unescaped(fields["n"])
        if not self.name or len(self.name) > NAME_LENGTH_MAX:
            raise ScramError("the name is empty or too long")
        if acts_for and (acts_for[:2] != "a=" or _unescaped(acts_for[2:]) != self.name):
            raise ScramError("a user cannot act for another one")
        if not 0 < len(fields["r"]) <= _NONCE_LENGTH_MAX:
            raise ScramError("the nonce is empty or too long")
        self._header = f"{binding},{acts_for},"
        self._nonce = fields["r"] + nonce
        self._server_first = ""

    def challenge(self, salt: bytes, iterations: int) -> bytes:
        """Return the server's first message."""
        self._server_first = f"r={self._nonce},s={_base64(salt)},i={iterations}"
        return self._server_first.encode()

    def verify(self, client_final: bytes, credential: Credential) -> bytes:
        """Return the server's last message, which proves the server to the client.

        Raises:
            ScramError: The proof is wrong, or the message malformed.
        """
        text = _text(client_final)
        without_proof, found, _ = text.rpartition(",p=")
        fields = _fields(text, "crp")
        expected = _base64(self._header.encode())
        if not found or fields["c"] != expected or fields["r"] != self._nonce:
            raise ScramError("the message does not belong to this exchange")
        signed = f"{self._first_bare},{self._server_first},{without_proof}".encode()
        proof = _bytes_of(fields["p"])
        signature = self._mechanism.hmac(credential.stored_key, signed)
        is_right = len(proof) == len(signature) and hmac.compare_digest(
            self._mechanism.hash(_xor(proof, signature)), credential.stored_key
        )
        if not is_right:
            raise ScramError(_REFUSED)
        return f"v={_base64(self._mechanism.hmac(credential.server_key, signed))}".encode()


def _keys(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> _Keys:
    salted = hashlib.pbkdf2_hmac(
        mechanism.hash_name, password.encode("utf-8", "surrogateescape"), salt, iterations
    )
    client = mechanism.hmac(salted, b"Client Key")
    return _Keys(client, mechanism.hash(client), mechanism.hmac(salted, b"Server Key"))


def _fields(text: str, names: str) -> dict[str, str]:
    """Return the fields of a message, which must begin with ``names`` in this order.

    Optional extensions behind or between them are ignored; a mandatory one (``m=``) is refused.
    """
    parts = [part.partition("=") for part in text.split(",")]
    if any(len(name) != 1 or not equals for name, equals, _ in parts):
        raise ScramError("the message is malformed")
    if "m" in {name for name, _, _ in parts}:
        raise ScramError("a mandatory extension is not supported")
    known = [(name, value) for name, _, value in parts if name in names]
    if parts[0][0] != names[0] or [name for name, _ in known] != list(names):
        raise ScramError("the message is malformed")
    return dict(known)


def _text(message: bytes) -> str:
    if len(message) > MESSAGE_BYTES_MAX:
        raise ScramError("the message is too long")
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        raise ScramError("the message is not UTF-8") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(ITERATIONS_MAX)) + 4):
        raise ScramError("the message is malformed")
    return int(text)


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _bytes_of(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError("the message is malformed") from None


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    plain = name.replace("=2C", ",").replace("=3D", "=")
    if _escaped(plain) != name:
        raise ScramError("the name is malformed")
    return plain


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
