"""A command's fingerprint: equal in every process, different for other content."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from statemachine.commands import (
    ConfigChange,
    ConfigOperation,
    CreateTopic,
    DeleteTopic,
    IncrementalAlterConfigs,
    InitProducerId,
)
from statemachine.fingerprint import FINGERPRINT_BYTES, command_fingerprint, owner_digest

TODAY = DeleteTopic("t")


def setting(value, *, dry_run=False):
    return IncrementalAlterConfigs(2, "t", (ConfigChange("k", 0, value),), dry_run)


def test_it_is_the_same_in_every_process_and_release():
    """A leader compares it with fingerprints that another release wrote. Never change these."""
    assert command_fingerprint(setting("v")).hex() == "69c9e1a9effe18f2dd34d9770c39ed5b"
    assert command_fingerprint(InitProducerId()).hex() == "f7dec7a75d6b0cfacf9dafbdd3f61722"
    assert command_fingerprint(setting("\ud800")).hex() == "70bff041ab429a1371eba025ebcc94e4"
    assert owner_digest("tls:ann").hex() == "5186f1922c5124eb4bb0f224ce0a2512"


def test_a_new_field_with_a_default_changes_nothing():
    @dataclass(frozen=True, slots=True)
    class DeleteTopic:
        name: str = ""
        later: int = 7

    assert command_fingerprint(DeleteTopic("t")) == command_fingerprint(TODAY)
    assert command_fingerprint(DeleteTopic("t", 8)) != command_fingerprint(TODAY)


def test_content_and_type_make_the_difference():
    commands = [
        setting("v"),
        setting("w"),
        setting("v", dry_run=True),
        IncrementalAlterConfigs(2, "t", (ConfigChange("k", 1, "v"),)),
        IncrementalAlterConfigs(2, "t", (ConfigChange("k", 0, "v"),) * 2),
        CreateTopic("t"),
        CreateTopic("t", 1),
        DeleteTopic("t"),
        DeleteTopic(topic_id=b"t" * 16),
    ]
    found = {command_fingerprint(command) for command in commands}
    assert len(found) == len(commands)
    assert {len(each) for each in found} == {FINGERPRINT_BYTES}


def test_a_number_and_its_name_are_alike():
    named = IncrementalAlterConfigs(2, "t", (ConfigChange("k", ConfigOperation.SET, "v"),))
    assert command_fingerprint(named) == command_fingerprint(setting("v"))


@given(st.text(), st.text())
def test_any_text_has_one(one, other):
    assert (command_fingerprint(setting(one)) == command_fingerprint(setting(other))) is (
        one == other
    )
    command_fingerprint(setting("\ud800"))
    assert (owner_digest(one) == owner_digest(other)) is (one == other)
