"""``quorum-state`` with the bootstrap state of its quorum, and with a disqualification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorum.errors import ElectionStateError
from quorum.log.election_store import ElectionFile, decode_election_state, encode_election_state
from quorum.log.side_file import seal
from quorum.types import BootstrapState, ElectionState, OffsetAndEpoch, ReplicaKey, uuid_to_text
from simulation.memory_filesystem import MemoryFileSystem

HOME = Path("/node")
INCARNATIONS = (b"a" * 16, b"b" * 16, b"c" * 16)
VOTER_LIST = ((1, INCARNATIONS[0]), (2, INCARNATIONS[1]), (10, INCARNATIONS[2]))
FULL = ElectionState(
    epoch=0,
    bootstrap_state=BootstrapState(INCARNATIONS[0], VOTER_LIST, is_complete=True),
    vote_floor=OffsetAndEpoch(7, 2),
    disqualified='voter 2 said "no"',
)
STATES = [
    ElectionState(bootstrap_state=BootstrapState(INCARNATIONS[0])),
    ElectionState(bootstrap_state=BootstrapState(INCARNATIONS[0], VOTER_LIST)),
    ElectionState(epoch=4, voted=ReplicaKey(1, INCARNATIONS[1]), disqualified="freshly formatted"),
    FULL,
]


@pytest.fixture
def fs() -> MemoryFileSystem:
    made = MemoryFileSystem()
    made.make_directory(HOME)
    return made


@pytest.mark.parametrize("state", STATES)
def test_it_round_trips(fs: MemoryFileSystem, state: ElectionState) -> None:
    ElectionFile(fs, HOME).save(state)
    assert ElectionFile(fs, HOME).load() == state


def test_fields_are_as_documented_and_absent_when_empty() -> None:
    """``docs/reference/formats.md``: three fields of bootstrap, and ``disqualified``."""
    plain = set(json.loads(encode_election_state(ElectionState(epoch=1))))
    fields = json.loads(encode_election_state(FULL))
    assert set(fields) - plain == {
        "incarnationId", "voterList", "isBootstrapped", "disqualified",
        "voteFloorOffset", "voteFloorEpoch",
    }  # fmt: skip
    assert fields["voterList"] == {
        str(key): uuid_to_text(incarnation) for key, incarnation in VOTER_LIST
    }


def line(**changes: Any) -> str:
    fields = json.loads(encode_election_state(FULL))
    fields.update({name: value for name, value in changes.items() if value is not None})
    for name, value in changes.items():
        if value is None:
            del fields[name]
    return json.dumps(fields)


INCARNATION = uuid_to_text(INCARNATIONS[0])


@pytest.mark.parametrize(
    "changes",
    [
        {"incarnationId": 7},
        {"incarnationId": "short"},
        {"incarnationId": uuid_to_text(bytes(16))},
        {"voterList": [1, 2]},
        {"voterList": {"one": INCARNATION}},
        {"voterList": {"-1": INCARNATION}},
        {"voterList": {"1": INCARNATION, "01": INCARNATION}},
        {"voterList": {"1": "short"}},
        {"voterList": {"1": 5}},
        {"voterList": {"1": uuid_to_text(bytes(16))}},
        {"isBootstrapped": 1},
        {"isBootstrapped": "true"},
        {"disqualified": True},
        {"disqualified": ["x"]},
        {"voteFloorOffset": None},
        {"voteFloorEpoch": -1},
        {"leaderEpoch": "0"},
        {"data_version": 2},
    ],
    ids=str,
)
def test_a_field_that_cannot_be_is_an_error(fs: MemoryFileSystem, changes: dict[str, Any]) -> None:
    """A checksum that fits does not make it true: nothing is guessed, and the path is named."""
    with pytest.raises(ValueError):
        decode_election_state(line(**changes))
    fs.write_bytes(HOME / "quorum-state", seal(line(**changes)))
    with pytest.raises(ElectionStateError, match="quorum-state"):
        ElectionFile(fs, HOME).load()


def test_fields_of_later_releases_are_passed_over() -> None:
    assert decode_election_state(line(somethingNew={"a": 1})) == FULL


@pytest.mark.parametrize("state", [FULL, ElectionState(epoch=6, voted=ReplicaKey(0))])
def test_every_flipped_bit_and_every_cut_is_noticed(
    fs: MemoryFileSystem, state: ElectionState
) -> None:
    """A forgotten vote or voter list would let this disk, or a second one, vote twice."""
    store = ElectionFile(fs, HOME)
    store.save(state)
    whole = fs.read_bytes(HOME / "quorum-state")
    for position in range(len(whole)):
        for bit in range(8):
            fs.write_bytes(HOME / "quorum-state", whole)
            fs.flip_bit(HOME / "quorum-state", position, bit)
            with pytest.raises(ElectionStateError):
                store.load()
        fs.write_bytes(HOME / "quorum-state", whole[:position])
        with pytest.raises(ElectionStateError):
            store.load()
