"""ACLs, SCRAM credentials, delegation tokens and client quotas.

The image keeps the records themselves, so that a checkpoint loses none of their content. ACLs are
also arranged for decisions (``acl_index``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from immutables import Map

from quorum.errors import ReplayError
from quorum.types import Uuid, uuid_to_text
from statemachine.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    QuotaEntity,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from statemachine.sections.acl_index import EMPTY_INDEX, AclIndex
from statemachine.sections.map_delta import EMPTY_MAP, MapDelta, NestedMapDelta
from statemachine.sections.tracking import ChangeTracker

_ACL = AccessControlEntryRecord.API_KEY
_SCRAM = UserScramCredentialRecord.API_KEY
_TOKEN = DelegationTokenRecord.API_KEY
_QUOTA = ClientQuotaRecord.API_KEY

QuotaKey: TypeAlias = tuple[QuotaEntity, ...]
"""The parts of a quota's entity, sorted by type."""


@dataclass(frozen=True, slots=True)
class SecurityImage:
    """Everything security related at one position."""

    acls: Map[Uuid, AccessControlEntryRecord] = EMPTY_MAP
    scram: Map[tuple[str, int], UserScramCredentialRecord] = EMPTY_MAP
    """By user name and mechanism."""
    tokens: Map[str, DelegationTokenRecord] = EMPTY_MAP
    quotas: Map[QuotaKey, Map[str, float]] = EMPTY_MAP
    acl_index: AclIndex = field(default=EMPTY_INDEX, compare=False)
    """``acls`` for decisions; it follows from them."""


class SecurityDelta:
    """Security under change."""

    __slots__ = (
        "_acl_index",
        "_acls_added",
        "_acls_removed",
        "_quotas",
        "_tracker",
        "acls",
        "scram",
        "tokens",
    )

    def __init__(self, base: SecurityImage, tracker: ChangeTracker) -> None:
        self.acls: MapDelta[Uuid, AccessControlEntryRecord] = MapDelta(base.acls)
        self.scram: MapDelta[tuple[str, int], UserScramCredentialRecord] = MapDelta(base.scram)
        self.tokens: MapDelta[str, DelegationTokenRecord] = MapDelta(base.tokens)
        self._quotas: NestedMapDelta[QuotaKey, str, float] = NestedMapDelta(base.quotas)
        self._tracker = tracker
        self._acl_index = base.acl_index
        self._acls_added: dict[Uuid, AccessControlEntryRecord] = {}
        self._acls_removed: dict[Uuid, AccessControlEntryRecord] = {}

    @property
    def acl_index(self) -> AclIndex:
        """The ACLs as of now, for decisions."""
        if self._acls_added or self._acls_removed:
            added, removed = self._acls_added.values(), self._acls_removed.values()
            self._acl_index = self._acl_index.changed(added, removed)
            self._acls_added, self._acls_removed = {}, {}
        return self._acl_index

    @property
    def quotas(self) -> Map[QuotaKey, Map[str, float]]:
        """Quotas as of now."""
        return self._quotas.settle()

    def settle(self) -> SecurityImage:
        """Return the image as of now; the delta stays usable."""
        return SecurityImage(
            self.acls.settle(),
            self.scram.settle(),
            self.tokens.settle(),
            self._quotas.settle(),
            self.acl_index,
        )

    def replay_acl(self, record: AccessControlEntryRecord) -> None:
        """Add an ACL.

        Raises:
            ReplayError: Another ACL has its id.
        """
        old = self.acls.get(record.id)
        if old is not None and old != record:
            raise ReplayError(f"ACL {uuid_to_text(record.id)} exists with other content")
        if old is None:
            self._acls_added[record.id] = record
        self.acls.set(record.id, record)

    def replay_acl_removal(self, record: RemoveAccessControlEntryRecord) -> None:
        """Remove an ACL.

        Raises:
            ReplayError: There is none with that id.
        """
        if record.id not in self.acls:
            raise ReplayError(f"removal of no ACL: {uuid_to_text(record.id)}")
        removed = self.acls.pop(record.id)
        if self._acls_added.pop(record.id, None) is None:
            self._acls_removed[record.id] = removed
        self._tracker.deleted((_ACL, record.id))

    def replay_scram(self, record: UserScramCredentialRecord) -> None:
        """Set a credential."""
        name = (record.name, record.mechanism)
        old = self.scram.get(name)
        if old is not None and old != record:
            self._tracker.modified((_SCRAM, *name))
        self.scram.set(name, record)

    def replay_scram_removal(self, record: RemoveUserScramCredentialRecord) -> None:
        """Remove a credential.

        Raises:
            ReplayError: There is none of that user and mechanism.
        """
        name = (record.name, record.mechanism)
        if name not in self.scram:
            raise ReplayError(f"removal of no SCRAM credential: {name}")
        self.scram.pop(name)
        self._tracker.deleted((_SCRAM, *name))

    def replay_token(self, record: DelegationTokenRecord) -> None:
        """Create or renew a token."""
        old = self.tokens.get(record.token_id)
        if old is not None and old != record:
            self._tracker.modified((_TOKEN, record.token_id))
        self.tokens.set(record.token_id, record)

    def replay_token_removal(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove a token. As in Kafka, a missing token is accepted."""
        if record.token_id in self.tokens:
            self.tokens.pop(record.token_id)
            self._tracker.deleted((_TOKEN, record.token_id))

    def replay_quota(self, record: ClientQuotaRecord) -> None:
        """Set or remove a quota. Removing a quota that is not set does nothing."""
        entity = record.sorted_entity
        quotas = self._quotas.open_group(entity)
        key = (_QUOTA, entity, record.key)
        old = quotas.get(record.key)
        if record.remove:
            if old is not None:
                quotas.pop(record.key)
                self._tracker.deleted(key)
            return
        quotas[record.key] = record.value
        if old is not None and old != record.value:
            self._tracker.modified(key)
        self._tracker.stored(key, record.extra, existed=old is not None)
