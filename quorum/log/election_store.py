"""``quorum-state``: the epoch, its leader and the vote cast in it, on disk.

The first line is Kafka's JSON of data version 1. Our vote floor and the disk's directory id are in
fields that Kafka's reader ignores. The second line is a checksum. A replica that loses a vote may
vote twice, so a damaged file, or one of another disk, stops the node; it never reads as "no vote".

See: KIP-595 (QuorumState), KIP-853 (data version 1), ADR 7 (vote floor).
"""

from __future__ import annotations

import json
from pathlib import Path

from quorum.errors import ElectionStateError, StorageError
from quorum.log.layout import QUORUM_STATE_NAME
from quorum.log.side_file import integer_field, parse_object, read_file, replace_file, seal, unseal
from quorum.ports import FileSystem
from quorum.types import (
    NO_NODE,
    ZERO_UUID,
    BootstrapState,
    ElectionState,
    OffsetAndEpoch,
    ReplicaKey,
    Uuid,
    uuid_from_text,
    uuid_to_text,
)

VERSION = 1
VERSIONS_READ = (0, 1)


def encode_election_state(state: ElectionState, owner: Uuid = ZERO_UUID) -> str:
    """Return the JSON line of data version 1; ``owner`` is the disk's directory id, if known."""
    voted = state.voted or ReplicaKey(NO_NODE)
    fields: dict[str, object] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": voted.id,
        "votedDirectoryId": uuid_to_text(voted.directory_id),
    }
    if state.vote_floor is not None:
        fields["voteFloorOffset"] = state.vote_floor.offset
        fields["voteFloorEpoch"] = state.vote_floor.epoch
    if state.bootstrap_state is not None:
        fields["incarnationId"] = uuid_to_text(state.bootstrap_state.incarnation_id)
        fields["voterList"] = {
            str(key): uuid_to_text(incarnation)
            for key, incarnation in state.bootstrap_state.voter_list
        }
        fields["isBootstrapped"] = state.bootstrap_state.is_complete
    if state.disqualified:
        fields["disqualified"] = state.disqualified
    if owner != ZERO_UUID:
        fields["directoryId"] = uuid_to_text(owner)
    fields["data_version"] = VERSION
    return json.dumps(fields, separators=(",", ":"))


def decode_election_state(line: str) -> ElectionState:
    """Read the JSON line of data version 0 or 1.

    Raises:
        ValueError: Malformed, or of a version that this release does not know.
    """
    fields = parse_object(line)
    version = fields.get("data_version")
    if type(version) is not int or version not in VERSIONS_READ:
        raise ValueError(f"data_version {version!r}; this release reads {VERSIONS_READ}")
    voted_id = integer_field(fields, "votedId", least=NO_NODE, default=NO_NODE)
    return ElectionState(
        # Kafka writes epoch -1 for a replica that never took part.
        epoch=max(integer_field(fields, "leaderEpoch", least=-1, default=-1), 0),
        leader_id=integer_field(fields, "leaderId", least=NO_NODE, default=NO_NODE),
        voted=None if voted_id == NO_NODE else ReplicaKey(voted_id, _voted_directory(fields)),
        vote_floor=_vote_floor(fields),
        bootstrap_state=_bootstrap_state(fields),
        disqualified=_text(fields, "disqualified"),
    )


def _bootstrap_state(fields: dict[str, object]) -> BootstrapState | None:
    if "incarnationId" not in fields:
        return None
    voter_list, is_complete = fields.get("voterList", {}), fields.get("isBootstrapped", False)
    if not isinstance(voter_list, dict) or type(is_complete) is not bool:
        raise ValueError(f"voter list {voter_list!r}, isBootstrapped {is_complete!r}")
    incarnations = tuple(
        sorted(
            (int(key), uuid_from_text(str(incarnation))) for key, incarnation in voter_list.items()
        )
    )
    incarnation_id = uuid_from_text(_text(fields, "incarnationId"))
    ids = [key for key, _ in incarnations]
    has_odd_ids = len(set(ids)) != len(ids) or min(ids, default=0) < 0
    if has_odd_ids or ZERO_UUID in {incarnation_id, *dict(incarnations).values()}:
        raise ValueError(f"incarnationId {fields['incarnationId']!r}, voter list {voter_list!r}")
    return BootstrapState(incarnation_id, incarnations, is_complete)


def _text(fields: dict[str, object], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, where text is expected")
    return value


def _voted_directory(fields: dict[str, object]) -> bytes:
    text = fields.get("votedDirectoryId")
    if text is None:
        return ZERO_UUID
    if not isinstance(text, str):
        raise ValueError(f"votedDirectoryId is {text!r}, where text is expected")
    return uuid_from_text(text)


def _vote_floor(fields: dict[str, object]) -> OffsetAndEpoch | None:
    if "voteFloorOffset" not in fields and "voteFloorEpoch" not in fields:
        return None
    return OffsetAndEpoch(
        integer_field(fields, "voteFloorOffset", least=0),
        integer_field(fields, "voteFloorEpoch", least=0),
    )


class ElectionFile:
    """``ports.ElectionStore`` on one file. Owned by the writer thread.

    Invariant: after any crash ``load`` returns the state of the last ``save`` that returned, or
    of the one under way.
    """

    def __init__(self, fs: FileSystem, directory: Path, owner: Uuid = ZERO_UUID) -> None:
        """Use the file of the disk ``owner``; a file that names another disk is not loaded."""
        self._fs = fs
        self._path = directory / QUORUM_STATE_NAME
        self._owner = owner
        self._known: tuple[bytes, ElectionState] | None = None
        """Last content read and its state, cached: a start reads the file several times."""

    def exists(self) -> bool:
        """Whether the file exists. Formatting writes it, so a replica without it has lost it."""
        return self._fs.exists(self._path)

    def load(self) -> ElectionState:
        """Return the stored state, or the default if the file does not exist.

        Raises:
            ElectionStateError: Unreadable, checksum missing or wrong, a future version, or the
                file of another disk.
        """
        return self._load(is_foreign=False)

    def load_foreign(self) -> ElectionState:
        """Load a file that Kafka may have written, which has no checksum line.

        For tools that read another cluster's directory; never for elections.

        Raises:
            ElectionStateError: Unreadable, or a future version.
        """
        return self._load(is_foreign=True)

    def _load(self, *, is_foreign: bool) -> ElectionState:
        try:
            if not self._fs.exists(self._path):
                return ElectionState()
            data = read_file(self._fs, self._path)
            is_sealed = b"\n" in data.rstrip(b"\n")
            if is_foreign and not is_sealed:
                return decode_election_state(data.decode())
            if not is_sealed:
                raise ValueError(
                    "no checksum line; if a Kafka controller wrote it, `quorate adopt DIR` makes "
                    "its directory ours"
                )
            if self._known is None or self._known[0] != data:
                line = unseal(data)
                self._check_owner(line)
                self._known = (data, decode_election_state(line))
            return self._known[1]
        except (ValueError, StorageError) as error:
            raise ElectionStateError(f"unusable election state: {error}", self._path) from error

    def _check_owner(self, line: str) -> None:
        """Refuse a vote of another disk; files of old releases name no disk.

        Raises:
            ValueError: The file names another disk.
        """
        owner = _text(parse_object(line), "directoryId")
        if owner and self._owner not in (ZERO_UUID, uuid_from_text(owner)):
            raise ValueError(
                f"written by the disk {owner}, but this one is {uuid_to_text(self._owner)}"
            )

    def save(self, state: ElectionState) -> None:
        """Replace the state durably.

        Raises:
            StorageError: The old or the new state is on disk; no promise may be sent.
        """
        replace_file(self._fs, self._path, seal(encode_election_state(state, self._owner)))

    def save_foreign(self, state: ElectionState) -> None:
        """Replace the state durably by a file as Kafka writes it, without checksum or own fields.

        Raises:
            StorageError: The old or the new state is on disk.
        """
        plain = ElectionState(state.epoch, state.leader_id, state.voted)
        replace_file(self._fs, self._path, encode_election_state(plain).encode())
