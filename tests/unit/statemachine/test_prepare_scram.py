"""Commands about users' credentials: what they write, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import AlterUserScramCredentials, ScramDeletion, ScramUpsertion
from statemachine.delta import ImageDelta
from statemachine.image import MetadataImage
from statemachine.prepare import prepare
from statemachine.prepare.scram import CREDENTIALS_PER_COMMAND_MAX, DECOY
from statemachine.records import (
    FeatureLevelRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from tests.support.image_builder import evaluation, replayed

ALICE = ScramUpsertion("alice", 1, 4096, b"s" * 32, b"k" * 32, b"v" * 32)
STRONG = replace(ALICE, mechanism=2, stored_key=b"k" * 64, server_key=b"v" * 64)
BASE = replayed(FeatureLevelRecord("metadata.version", 33))


def applied(image: MetadataImage, command: AlterUserScramCredentials) -> MetadataImage:
    delta = ImageDelta(image)
    for record in prepare(image, command, evaluation()).records:
        delta.replay(record)
    return delta.finish()


def test_the_first_credential_brings_the_decoy_and_no_other_one_does() -> None:
    image = applied(BASE, AlterUserScramCredentials((ALICE,)))
    assert set(image.security.scram) == {DECOY, ("alice", 1)}
    stored = image.security.scram["alice", 1]
    assert stored == UserScramCredentialRecord(
        "alice", 1, ALICE.salt, ALICE.stored_key, ALICE.server_key, 4096
    )
    (record,) = prepare(image, AlterUserScramCredentials((STRONG,)), evaluation()).records
    assert record == UserScramCredentialRecord(
        "alice", 2, STRONG.salt, STRONG.stored_key, STRONG.server_key, 4096
    )
    gone = applied(image, AlterUserScramCredentials(deletions=(ScramDeletion("alice", 1),)))
    assert set(gone.security.scram) == {DECOY}


def test_the_decoys_keys_are_drawn() -> None:
    keys = set()
    for seed in (1, 2):
        records = prepare(BASE, AlterUserScramCredentials((ALICE,)), evaluation(seed=seed)).records
        assert isinstance(records[0], UserScramCredentialRecord)
        keys |= {records[0].salt, records[0].stored_key, records[0].server_key}
    assert len(keys) == 6


def test_an_equal_credential_changes_nothing() -> None:
    image = applied(BASE, AlterUserScramCredentials((ALICE,)))
    assert prepare(image, AlterUserScramCredentials((ALICE,)), evaluation()).records == []


def test_one_command_sets_and_removes() -> None:
    image = applied(BASE, AlterUserScramCredentials((ALICE,)))
    change = AlterUserScramCredentials((STRONG,), (ScramDeletion("alice", 1),))
    kinds = [type(each) for each in prepare(image, change, evaluation()).records]
    assert kinds == [UserScramCredentialRecord, RemoveUserScramCredentialRecord]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": ""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"name": "a" * 1025}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"name": "a\nb"}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"name": " alice"}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": 4095}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": 16385}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salt": b"s" * 15}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salt": b"s" * 129}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"stored_key": b"k" * 31}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"server_key": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"mechanism": 2}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"mechanism": 0}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"mechanism": 3}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_a_credential_is_refused(change: dict[str, Any], code: ErrorCode) -> None:
    with pytest.raises(CommandError) as refused:
        prepare(BASE, AlterUserScramCredentials((replace(ALICE, **change),)), evaluation())
    assert refused.value.code is code


@pytest.mark.parametrize(
    "change",
    [{"iterations": 4096}, {"iterations": 16384}, {"salt": b"s" * 16}, {"salt": b"s" * 128}],
)
def test_each_bound_is_included(change: dict[str, Any]) -> None:
    made = prepare(BASE, AlterUserScramCredentials((replace(ALICE, **change),)), evaluation())
    assert len(made.records) == 2


def test_a_deletion_without_mechanism_removes_what_the_command_does_not_set() -> None:
    """Goal: a repeat is the same command, whatever is there meanwhile (360.8)."""
    both = applied(BASE, AlterUserScramCredentials((ALICE, STRONG)))
    every = ScramDeletion("alice", 0)
    kept = applied(both, AlterUserScramCredentials((ALICE,), (every,)))
    assert set(kept.security.scram) == {DECOY, ("alice", 1)}
    again = AlterUserScramCredentials((ALICE,), (every, ScramDeletion("alice", 2)))
    assert set(applied(both, again).security.scram) == {DECOY, ("alice", 1)}
    new = applied(BASE, AlterUserScramCredentials((ALICE,), (every,)))
    assert set(new.security.scram) == {DECOY, ("alice", 1)}
    gone = applied(both, AlterUserScramCredentials(deletions=(every,)))
    assert set(gone.security.scram) == {DECOY}
    for nobody in ("alice", ""):
        change = AlterUserScramCredentials(deletions=(ScramDeletion(nobody, 0),))
        assert refusal(gone, change) is ErrorCode.RESOURCE_NOT_FOUND


def refusal(image: MetadataImage, command: AlterUserScramCredentials) -> ErrorCode:
    with pytest.raises(CommandError) as refused:
        prepare(image, command, evaluation())
    return refused.value.code


def test_a_removal_of_nothing_and_of_the_decoy_is_refused() -> None:
    image = applied(BASE, AlterUserScramCredentials((ALICE,)))
    for name, mechanism, code in (
        ("bob", 1, ErrorCode.RESOURCE_NOT_FOUND),
        ("alice", 2, ErrorCode.RESOURCE_NOT_FOUND),
        (*DECOY, ErrorCode.RESOURCE_NOT_FOUND),
        ("alice", 9, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ):
        command = AlterUserScramCredentials(deletions=(ScramDeletion(name, mechanism),))
        assert refusal(image, command) is code


def test_a_command_names_each_credential_once_and_not_too_many() -> None:
    assert refusal(BASE, AlterUserScramCredentials()) is ErrorCode.INVALID_REQUEST
    twice = AlterUserScramCredentials((ALICE,), (ScramDeletion("alice", 1),))
    assert refusal(BASE, twice) is ErrorCode.INVALID_REQUEST
    many = tuple(
        replace(ALICE, name=f"u{number}") for number in range(CREDENTIALS_PER_COMMAND_MAX + 1)
    )
    assert refusal(BASE, AlterUserScramCredentials(many)) is ErrorCode.POLICY_VIOLATION


def test_old_metadata_versions_have_no_credentials() -> None:
    old = replayed(FeatureLevelRecord("metadata.version", 10))
    assert refusal(old, AlterUserScramCredentials((ALICE,))) is ErrorCode.UNSUPPORTED_VERSION
    enough = replayed(FeatureLevelRecord("metadata.version", 11))
    assert prepare(enough, AlterUserScramCredentials((ALICE,)), evaluation()).records
