"""Making a data directory for one node: identity, and the checkpoint that a cluster starts from.

The identity file is written last and durably, so that a directory is either formatted or not;
an interrupted attempt is repeated. Nothing here draws ids or looks at a clock: the same plan
writes the same bytes on every node, directory id aside.

See: KIP-853 (initial voters), docs/reference/formats.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quorate.features import INITIAL_LEVELS, KRAFT_VERSION_MAX, level_problem
from quorate.replica.log_incarnation import incarnation_text
from quorum.errors import ConfigError, IdentityError
from quorum.log.election_store import ElectionFile
from quorum.log.identity import (
    MetaProperties,
    load_identity,
    write_identity,
    write_partition_metadata,
)
from quorum.log.layout import META_PROPERTIES_NAME, partition_directory, segment_bases
from quorum.ports import FileSystem
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, ZERO_UUID, ElectionState, NodeId, Uuid, Voter
from snapshot.writer import write_checkpoint
from statemachine.codec import encode_kafka, encode_record
from statemachine.records import METADATA_VERSION, FeatureLevelRecord


@dataclass(frozen=True, slots=True)
class FormatPlan:
    """What a directory is to become.

    ``voters`` is the whole initial voter set, the same on every node; empty for a node that
    will join a running cluster, or whose voters are configured (``bootstrap.voters``).
    """

    data_dir: Path
    cluster_id: str
    node_id: NodeId
    directory_id: Uuid
    voters: tuple[Voter, ...] = ()
    levels: Mapping[str, int] = field(default_factory=lambda: dict(INITIAL_LEVELS))
    uses_native_codec: bool = True
    kraft_version: int = KRAFT_VERSION_MAX
    log_incarnation_id: Uuid = ZERO_UUID
    """Of a cluster that was recovered or restored; zero for all others."""

    def problems(self) -> list[str]:
        """Everything that is wrong with the plan, one sentence each."""
        found = []
        for name, level in self.levels.items():
            problem = level_problem(name, level)
            if problem:
                found.append(problem)
        if self.levels.get(METADATA_VERSION, 0) == 0:
            found.append(f"{METADATA_VERSION} must be finalised")
        if self.voters and self.kraft_version < 1:
            found.append("initial voters need kraft.version 1")
        if self.voters and self.log_incarnation_id != ZERO_UUID:
            found.append("a log of a later incarnation has voters already: format without any")
        ids = [voter.key.id for voter in self.voters]
        if len(set(ids)) != len(ids):
            found.append("the initial voters name a node id twice")
        for voter in self.voters:
            if voter.key.directory_id == ZERO_UUID:
                found.append(f"initial voter {voter.key.id} lacks its directory id")
            elif voter.key.id == self.node_id and voter.key.directory_id != self.directory_id:
                found.append(f"initial voter {voter.key.id} has another directory id than the node")
        return found


@dataclass(frozen=True, slots=True)
class FormatReport:
    """What was done. ``was_formatted``: the directory already had its identity and was left."""

    identity: MetaProperties
    was_formatted: bool


def format_directory(
    fs: FileSystem, plan: FormatPlan, *, ignore_formatted: bool = False
) -> FormatReport:
    """Make ``plan.data_dir`` a data directory.

    With ``ignore_formatted`` a directory of the same node and cluster is left as it is.

    Durability: everything is on disk when this returns.

    Raises:
        ConfigError: The plan cannot work; nothing was written.
        IdentityError: The directory is formatted already, or holds a log of unknown origin.
        StorageError: The disk failed.
    """
    problems = plan.problems()
    if problems:
        raise ConfigError(problems)
    if fs.exists(plan.data_dir / META_PROPERTIES_NAME):
        if not ignore_formatted:
            raise IdentityError("is formatted already", plan.data_dir)
        identity = load_identity(
            fs, plan.data_dir, node_id=plan.node_id, cluster_id=plan.cluster_id
        )
        if identity.log_incarnation_id != plan.log_incarnation_id:
            raise IdentityError(
                f"is formatted for {incarnation_text(identity.log_incarnation_id)} of the log, not "
                f"for {incarnation_text(plan.log_incarnation_id)}",
                plan.data_dir,
            )
        return FormatReport(identity, was_formatted=True)
    directory = partition_directory(plan.data_dir)
    if segment_bases(fs.list_directory(directory)):
        raise IdentityError("holds a log but no identity; formatting would adopt it", directory)
    # Each by itself: only the last one that is made is for its owner alone.
    fs.make_directory(plan.data_dir)
    fs.make_directory(directory)
    write_checkpoint(
        fs,
        directory,
        BOOTSTRAP_SNAPSHOT_ID,
        values=_initial_records(plan),
        last_contained_log_timestamp=0,
        kraft_version=plan.kraft_version,
        voters=sorted(plan.voters, key=lambda voter: voter.key.id),
    )
    write_partition_metadata(fs, directory)
    # From here on its absence means that a vote may have been forgotten, not that none was cast.
    ElectionFile(fs, directory, plan.directory_id).save(ElectionState())
    fs.sync_directory(plan.data_dir)
    identity = MetaProperties(
        plan.cluster_id, plan.node_id, plan.directory_id, plan.log_incarnation_id
    )
    write_identity(fs, plan.data_dir, identity)
    return FormatReport(identity, was_formatted=False)


def _initial_records(plan: FormatPlan) -> Iterator[bytes]:
    encode = encode_record if plan.uses_native_codec else encode_kafka
    # metadata.version first: it decides the versions of whatever follows.
    names = sorted(plan.levels, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        if plan.levels[name]:
            yield encode(FeatureLevelRecord(name=name, feature_level=plan.levels[name]))
