"""Frames both ways: every message survives, no bytes crash."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.control_records import Origin
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse, Subtree
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse, ReadRound
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.errors import ErrorCode, PeerProtocolError, QuorumUsageError
from quorum.transport import framing
from quorum.transport.extensions import SUPPORTED, pack_part, pack_supported, unpack_supported
from quorum.transport.framing import decode_frame, encode_frame, is_answer, is_request, sender_key
from quorum.transport.hello import Hello, decode_hello, encode_hello
from quorum.transport.limits import NAME_CHARACTERS_MAX, RANGES_MAX
from quorum.transport.packing import HEADER
from quorum.types import DigestAt, Endpoint, OffsetAndEpoch, ReplicaKey, VersionRange, Voter

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
keys = st.builds(ReplicaKey, int32, st.binary(min_size=16, max_size=16))
positions = st.builds(OffsetAndEpoch, int64, int32)
# -1/-1 is how an absent position travels.
present = positions.filter(lambda p: p != OffsetAndEpoch(-1, -1))
rounds = st.builds(ReadRound, int32, int64)
texts = st.text(max_size=40)
endpoints = st.lists(st.builds(Endpoint, texts, texts, st.integers(0, 65535)), max_size=16).map(
    tuple
)
codes = st.sampled_from(ErrorCode)
voters = st.builds(Voter, keys, endpoints, int32, int32)
blobs = st.binary(max_size=300)
is_alive = st.binary(min_size=16, max_size=16)
voter_lists = st.lists(st.tuples(int32, is_alive), max_size=8).map(tuple)

_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "request_id": int64, "error": codes, "leader_id": int32, "epoch": int32,
    "high_watermark": int64, "log_start_offset": int64, "diverging": st.none() | present,
    "snapshot_id": st.none() | present, "records": blobs, "read_round": rounds,
    "leader_endpoints": endpoints, "leader_age_ms": int64,
}  # fmt: skip
# A response of the leader itself has no age and names no relays.
fetch_responses = st.builds(FetchResponse, **_PLAIN) | st.builds(
    FetchResponse, **_PLAIN, path=st.lists(keys, min_size=1, max_size=8).map(tuple),
    contact_age_ms=int32,
)  # fmt: skip
MESSAGES: dict[type, st.SearchStrategy[Message]] = {
    VoteRequest: st.builds(
        VoteRequest, int64, texts, keys, keys, int32, positions, st.booleans()
    ),
    VoteResponse: st.builds(VoteResponse, int64, codes, int32, int32, st.booleans(), endpoints),
    BeginQuorumEpochRequest: st.builds(
        BeginQuorumEpochRequest, int64, texts, keys, keys, int32, endpoints
    ),
    BeginQuorumEpochResponse: st.builds(
        BeginQuorumEpochResponse, int64, codes, int32, int32, endpoints,
        st.lists(st.builds(VersionRange, texts, int32, int32), max_size=64).map(tuple),
    ),
    EndQuorumEpochRequest: st.builds(
        EndQuorumEpochRequest, int64, texts, keys, int32,
        st.lists(keys, max_size=8).map(tuple), endpoints, st.booleans(),
        st.none() | st.builds(Origin, texts, texts),
    ),
    EndQuorumEpochResponse: st.builds(
        EndQuorumEpochResponse, int64, codes, int32, int32, endpoints
    ),
    BootstrapRequest: st.builds(
        BootstrapRequest, int64, texts, keys, keys, int32, is_alive, voter_lists
    ),
    BootstrapResponse: st.builds(
        BootstrapResponse, int64, codes, int32, int32, is_alive, voter_lists, endpoints
    ),
    FetchRequest: st.builds(
        FetchRequest, int64, texts, keys, int32, int64, int32, int64, int32, int32, rounds,
        st.binary(max_size=64), subtree=st.none() | st.builds(
            Subtree, int64, int32, st.lists(st.tuples(int32, int32), max_size=256).map(tuple),
            st.booleans(),
        ),
        is_disqualified=st.booleans(), has_lost_records=st.booleans(),
        supported=st.lists(
            st.builds(VersionRange, st.text(max_size=60), int32, int32), max_size=64
        ).map(tuple),
    ),
    FetchResponse: fetch_responses,
    FetchSnapshotRequest: st.builds(
        FetchSnapshotRequest, int64, texts, keys, int32, positions, int64, int32, rounds,
        st.booleans(),
    ),
    FetchSnapshotResponse: st.builds(
        FetchSnapshotResponse, request_id=int64, error=codes, leader_id=int32, epoch=int32,
        snapshot_id=positions, size=int64, position=int64, chunk=blobs,
        chunk_crc=st.integers(0, 2**32 - 1), file_digest=st.binary(max_size=64),
        read_round=rounds, leader_endpoints=endpoints,
    ),
    ReadPositionRequest: st.builds(ReadPositionRequest, int64, texts, keys, int32),
    ReadPositionResponse: st.builds(
        ReadPositionResponse, int64, codes, int32, int32, st.integers(-1, 2**63 - 1), endpoints
    ),
    ChainDigestRequest: st.builds(
        ChainDigestRequest, int64, texts, keys, int32, st.lists(int64, max_size=32).map(tuple)
    ),
    ChainDigestResponse: st.builds(
        ChainDigestResponse, int64, codes, int32, int32, st.lists(int64, max_size=32).map(tuple),
        st.lists(st.builds(DigestAt, int64, st.binary(max_size=64)), max_size=32).map(tuple),
        st.just(()), endpoints, st.none() | keys,
    ),
    UpdateVoterRequest: st.builds(UpdateVoterRequest, int64, texts, voters, int32),
    AddVoterRequest: st.builds(AddVoterRequest, int64, texts, voters, int32),
    RemoveVoterRequest: st.builds(RemoveVoterRequest, int64, texts, keys, keys, int32),
    VoterChangeResponse: st.builds(
        VoterChangeResponse, int64, codes, int32, int32, st.text(max_size=1024), endpoints
    ),
}  # fmt: skip
messages = st.one_of(*MESSAGES.values())


@settings(max_examples=300, deadline=None)
@given(messages)
def test_every_message_survives(message: Message) -> None:
    """Encode and decode any message with numbers of legal width."""
    assert decode_frame(encode_frame(message)) == message


def test_every_message_type_is_generated() -> None:
    """The strategies above are exactly the members of the Message union."""
    assert set(MESSAGES) == set(Message.__args__)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(messages, st.randoms(use_true_random=False))
def test_mutated_frames_decode_or_are_refused(message: Message, rng: random.Random) -> None:
    """Flip, cut, drop and duplicate bytes: a message or PeerProtocolError, nothing else."""
    data = bytearray(encode_frame(message))
    for _ in range(rng.randint(1, 4)):
        where = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[where] = rng.randrange(256)
            case 1:
                del data[where:]
            case 2:
                del data[where : where + rng.randint(1, 9)]
            case _:
                data[where:where] = data[where : where + rng.randint(1, 9)]
        if not data:
            break
    try:
        decoded = decode_frame(bytes(data))
    except PeerProtocolError:
        return
    # A decoded message can be encoded again: no value is out of range.
    assert decode_frame(encode_frame(decoded)) == decoded


@pytest.mark.long
@pytest.mark.parametrize(
    ("parse", "known"),
    [(decode_frame, frozenset(framing._DECODERS)), (decode_hello, frozenset({framing.HELLO}))],
)
def test_random_bytes_behind_any_kind_are_refused_or_understood(
    parse: Callable[[bytes], Message | Hello], known: frozenset[int]
) -> None:
    """Every first byte, then noise, also behind the rest of a header.

    Only kinds that are known are ever understood, and what was read can be written again.
    """
    noise = st.binary(max_size=200)
    header = HEADER.pack(0, 0, HEADER.size, 7)[1:]
    refused, understood = Counter[int](), Counter[int]()

    def evaluate(kind: int, tail: bytes) -> None:
        try:
            read = parse(bytes([kind]) + tail)
        except PeerProtocolError:
            refused[kind] += 1
        else:
            understood[kind] += 1
            again = encode_hello(read) if isinstance(read, Hello) else encode_frame(read)
            assert parse(again) == read

    tails = noise | noise.map(header.__add__)
    thorough = settings(max_examples=40, deadline=None)(given(tail=tails)(evaluate))
    for kind in range(256):
        if kind in known:
            thorough(kind)
        else:
            evaluate(kind, b"")
            evaluate(kind, header)
    assert set(refused) == set(range(256))
    assert set(understood) <= known
    assert sum(refused.values()) + sum(understood.values()) >= 512 + 10 * len(known)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 100, b"\x30", b"\x20" + b"\0" * 11])
def test_plain_nonsense_is_refused(data: bytes) -> None:
    """Empty, unknown kinds, a header without a body, a vote without a candidate."""
    with pytest.raises(PeerProtocolError):
        decode_frame(data)


def example(message_type: type) -> Message:
    """One fixed message of a type."""
    key = ReplicaKey(1, b"d" * 16)
    where = OffsetAndEpoch(5, 1)
    made: dict[type, Any] = {
        VoteRequest: VoteRequest(1, "c", key, key, 2, where, pre_vote=True),
        FetchRequest: FetchRequest(1, "c", key, 2, 5, 1),
        FetchResponse: FetchResponse(1, ErrorCode.NONE, 1, 2, records=b"r"),
        FetchSnapshotRequest: FetchSnapshotRequest(1, "c", key, 2, where, 0, 9),
        FetchSnapshotResponse: FetchSnapshotResponse(1, ErrorCode.NONE, 1, 2, where),
        ChainDigestRequest: ChainDigestRequest(1, "c", key, 2, (5,)),
    }
    return made[message_type]


@pytest.mark.parametrize(
    ("message_type", "changes"),
    [
        (FetchRequest, {"fetch_offset": 1 << 63}),
        (FetchRequest, {"cluster_id": "x" * 256}),
        (FetchRequest, {"cluster_id": "\ud800"}),
        (FetchRequest, {"epoch": 1 << 31}),
        (FetchResponse, {"high_watermark": -(1 << 63) - 1}),
        (FetchResponse, {"leader_endpoints": (Endpoint("A", "h", 65536),)}),
        (FetchSnapshotRequest, {"max_bytes": 1 << 31}),
        (FetchSnapshotResponse, {"chunk_crc": -1}),
        (VoteRequest, {"epoch": 1 << 31}),
    ],
)
def test_numbers_that_do_not_fit_are_our_own_fault(
    message_type: type, changes: dict[str, Any]
) -> None:
    """One error type for everything that cannot be written."""
    message = dataclasses.replace(example(message_type), **changes)
    with pytest.raises(QuorumUsageError, match=message_type.__name__):
        encode_frame(message)


def test_a_later_release_may_append_fixed_fields() -> None:
    """Sixteen bytes more in front of the tail are stepped over."""
    for message_type in (FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse):
        message = example(message_type)
        frame = bytearray(encode_frame(message))
        tail = int.from_bytes(frame[2:4], "big")
        frame[tail:tail] = b"\xee" * 16
        frame[2:4] = (tail + 16).to_bytes(2, "big")
        assert decode_frame(bytes(frame)) == message


def test_requests_and_responses_are_distinguished() -> None:
    """Each request has one type of answer; senders are found in each kind of request."""
    assert is_request(example(FetchRequest))
    assert not is_request(example(FetchResponse))
    assert is_answer(example(FetchResponse), FetchRequest)
    assert not is_answer(example(FetchSnapshotResponse), FetchRequest)
    assert not is_answer(example(FetchRequest), FetchRequest)
    for message_type in (VoteRequest, FetchRequest, FetchSnapshotRequest, ChainDigestRequest):
        assert sender_key(example(message_type)) == ReplicaKey(1, b"d" * 16)


@given(
    st.builds(
        Hello, texts,
        st.builds(ReplicaKey, st.integers(-1, 2**31 - 1), st.binary(min_size=16, max_size=16)),
        st.binary(max_size=64), st.integers(0, 9), st.integers(0, 9), st.binary(max_size=16),
    )
)  # fmt: skip
def test_hellos_survive(hello: Hello) -> None:
    """Any hello, with and without a node id."""
    assert decode_hello(encode_hello(hello)) == hello


LOCAL_FIELDS = {"own"}
SHARED_FIELDS = {
    "request_id", "cluster_id", "candidate", "voter", "epoch", "last", "pre_vote", "error",
    "leader_id", "granted", "leader_endpoints", "leader", "preferred_successors", "replica",
    "fetch_offset", "last_fetched_epoch", "high_watermark", "max_wait_ms", "max_bytes",
    "read_round", "digest", "log_start_offset", "diverging", "snapshot_id", "records", "position",
    "size", "chunk", "chunk_crc", "file_digest", "read_offset", "leader_age_ms",
    "offsets", "points",
    "campaign_now", "subtree", "path", "contact_age_ms", "message",
    "is_disqualified", "has_lost_records", "sender",
    "incarnation_id", "voter_list", "supported", "origin",
}  # fmt: skip


@pytest.mark.parametrize("message_type", MESSAGES)
def test_a_new_field_must_be_given_a_place_on_the_wire(message_type: type) -> None:
    """A field with a default would otherwise be lost unseen.

    When this fails: carry the field in packing.py or in raft.proto, add it to the strategies
    above, then here.
    """
    fields = {field.name for field in dataclasses.fields(message_type)}
    assert fields <= SHARED_FIELDS | LOCAL_FIELDS


@pytest.mark.parametrize(
    "content",
    [
        pack_supported((VersionRange("f", 1, 2),))[3:-1],
        pack_supported((VersionRange("f", 1, 2),))[3:] + b"x",
        pack_supported((VersionRange("f", 1, 2),) * (RANGES_MAX + 1))[3:],
        pack_supported((VersionRange("f" * (NAME_CHARACTERS_MAX + 1), 1, 2),))[3:],
        pack_supported((VersionRange("f", 1, 2),))[3:-1] + b"\xff",
    ],
    ids=["cut short", "trailing byte", "too many", "long name", "no text"],
)
def test_version_ranges_that_make_no_sense_are_refused(content: bytes) -> None:
    with pytest.raises(PeerProtocolError):
        unpack_supported(pack_part(SUPPORTED, content))
