"""Set and remove SCRAM credentials of users (KIP-554), all of a command or none.

With the first credential the log gets a *decoy*: a credential of the empty name, whose keys nobody
has. Every node derives from it what it shows to an unknown user, so that all nodes show the same.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from quorum.errors import CommandError, ErrorCode
from quorum.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    NAME_LENGTH_MAX,
    SALT_BYTES,
    SALT_BYTES_MAX,
    SHA_256,
)
from statemachine.commands import AlterUserScramCredentials, ScramDeletion, ScramUpsertion
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.view import View
from statemachine.records import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

CREDENTIALS_PER_COMMAND_MAX: Final = 100
SALT_BYTES_MIN: Final = 16
SCRAM_METADATA_VERSION_MIN: Final = 11
"""Lowest metadata.version (Kafka 3.5) whose logs may hold credentials."""
DECOY: Final = ("", SHA_256.number)
"""Name and mechanism of the decoy. No user has this name, because SCRAM cannot send it."""
ANY_MECHANISM: Final = 0
"""A deletion that names it removes every credential of the user that the command does not set.
What it removes is decided here, so a command may be repeated without a look at the present state.
"""
_BY_NUMBER: Final = {each.number: each for each in MECHANISMS.values()}


def prepare_alter_user_scram_credentials(
    view: View, command: AlterUserScramCredentials, context: EvaluationContext
) -> Prepared:
    """Return one record per credential that is set or removed.

    Raises:
        CommandError: UNACCEPTABLE_CREDENTIAL for a credential that is malformed or weak;
            RESOURCE_NOT_FOUND for the removal of none; INVALID_REQUEST for nothing, or for the same
            credential twice; POLICY_VIOLATION for too many; UNSUPPORTED_SASL_MECHANISM;
            UNSUPPORTED_VERSION below ``SCRAM_METADATA_VERSION_MIN``.
    """
    level = view.features.metadata_version
    if level < SCRAM_METADATA_VERSION_MIN:
        raise CommandError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"credentials need metadata.version {SCRAM_METADATA_VERSION_MIN} or above; it is "
            f"{level}",
        )
    _check_count(command)
    records: list[MetadataRecord] = []
    for each in command.upsertions:
        _check_upsertion(each)
        record = UserScramCredentialRecord(
            each.name, each.mechanism, each.salt, each.stored_key, each.server_key, each.iterations
        )
        if view.security.scram.get((each.name, each.mechanism)) != record:
            records.append(record)
    if records and DECOY not in view.security.scram:
        rng, size = context.rng, SHA_256.key_bytes
        keys = rng.randbytes(size), rng.randbytes(size)
        salt = rng.randbytes(SALT_BYTES)
        records.insert(0, UserScramCredentialRecord(*DECOY, salt, *keys, ITERATIONS_MIN))
    kept = {(each.name, each.mechanism) for each in command.upsertions}
    removed: set[tuple[str, int]] = set()
    for gone in command.deletions:
        if gone.mechanism == ANY_MECHANISM:
            removed |= _all_of(view, gone.name, kept)
        else:
            _check_deletion(view, gone)
            removed.add((gone.name, gone.mechanism))
    records += [RemoveUserScramCredentialRecord(*each) for each in sorted(removed)]
    return Prepared(records)


def _all_of(view: View, name: str, kept: Set[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return the credentials of a user that the command does not set.

    Raises:
        CommandError: RESOURCE_NOT_FOUND: the user has none, and the command sets none.
    """
    every = {(name, number) for number in _BY_NUMBER}
    found = {each for each in every if name and each in view.security.scram}
    if not found and not every & kept:
        raise CommandError(ErrorCode.RESOURCE_NOT_FOUND, f"user {name[:100]!r} has no credential")
    return found - kept


def _check_count(command: AlterUserScramCredentials) -> None:
    named = [(each.name, each.mechanism) for each in command.upsertions]
    named += [(each.name, each.mechanism) for each in command.deletions]
    if not named:
        raise CommandError(ErrorCode.INVALID_REQUEST, "the command names no credential")
    if len(named) > CREDENTIALS_PER_COMMAND_MAX:
        raise CommandError(
            ErrorCode.POLICY_VIOLATION,
            f"{len(named)} credentials in one command exceed {CREDENTIALS_PER_COMMAND_MAX}",
        )
    if len(set(named)) < len(named):
        raise CommandError(ErrorCode.INVALID_REQUEST, "the command names a credential twice")


def _check_mechanism(number: int) -> None:
    if number not in _BY_NUMBER:
        raise CommandError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"unknown mechanism {number}; there are {', '.join(MECHANISMS)}",
        )


def _check_upsertion(each: ScramUpsertion) -> None:
    _check_mechanism(each.mechanism)
    key_bytes = _BY_NUMBER[each.mechanism].key_bytes
    problem = ""
    if not each.name:
        problem = "the name is empty"
    elif len(each.name) > NAME_LENGTH_MAX or not each.name.isprintable():
        problem = f"the name has more than {NAME_LENGTH_MAX} or unprintable characters"
    elif each.name != each.name.strip():
        problem = "the name begins or ends with space"
    elif not ITERATIONS_MIN <= each.iterations <= ITERATIONS_MAX:
        problem = f"{each.iterations} iterations are not {ITERATIONS_MIN} to {ITERATIONS_MAX}"
    elif not SALT_BYTES_MIN <= len(each.salt) <= SALT_BYTES_MAX:
        problem = f"the salt has not {SALT_BYTES_MIN} to {SALT_BYTES_MAX} bytes"
    elif {len(each.stored_key), len(each.server_key)} != {key_bytes}:
        problem = f"a key has not {key_bytes} bytes"
    if problem:
        raise CommandError(ErrorCode.UNACCEPTABLE_CREDENTIAL, problem)


def _check_deletion(view: View, each: ScramDeletion) -> None:
    _check_mechanism(each.mechanism)
    if not each.name or (each.name, each.mechanism) not in view.security.scram:
        raise CommandError(
            ErrorCode.RESOURCE_NOT_FOUND,
            f"user {each.name[:100]!r} has no credential of {_BY_NUMBER[each.mechanism].name}",
        )
