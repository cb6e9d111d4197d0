"""Credentials of passwords, computed where the password is, so that it never travels."""

from __future__ import annotations

import secrets

from quorum.scram import ITERATIONS_MIN, MECHANISMS, SALT_BYTES, SHA_512, credential_of
from quorum.v1.commands_pb2 import ScramUpsertion

DEFAULT_MECHANISM = SHA_512.name


def scram_upsertion(
    name: str,
    password: str,
    *,
    mechanism: str = DEFAULT_MECHANISM,
    iterations: int = ITERATIONS_MIN,
    salt: bytes = b"",
) -> ScramUpsertion:
    """Return the credential of a password; it takes milliseconds.

    Without ``salt`` it has a new random one. A program that repeats a command under a request id
    names the salt, because the repeat has to be the same command.

    ``mechanism`` is ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``. ``iterations`` are 4096 to 16384, as in
    Kafka.

    Raises:
        ValueError: The password is empty, or the mechanism unknown.
    """
    if not password:
        raise ValueError("the password is empty")
    if mechanism not in MECHANISMS:
        raise ValueError(f"unknown mechanism {mechanism!r}; there are {', '.join(MECHANISMS)}")
    found = MECHANISMS[mechanism]
    made = credential_of(found, password, salt or secrets.token_bytes(SALT_BYTES), iterations)
    return ScramUpsertion(
        name=name,
        mechanism=found.number,  # type: ignore[arg-type]  # the enum's numbers are Kafka's
        iterations=made.iterations,
        salt=made.salt,
        stored_key=made.stored_key,
        server_key=made.server_key,
    )
