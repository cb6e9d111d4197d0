"""Commands about who may do what: ACLs (KIP-11, KIP-290) and credentials of users (KIP-554)."""

from __future__ import annotations

from quorum.values import value


@value
class AclEntry:
    """One ACL: who may or may not do what, from where. Numbers are Kafka's (``acl_index``)."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@value
class AclFilter:
    """Selects ACLs; 1 (ANY) and None leave a field open.

    With the pattern type MATCH, ``resource_name`` selects all ACLs that concern that resource.
    """

    resource_type: int = 1
    resource_name: str | None = None
    pattern_type: int = 1
    principal: str | None = None
    host: str | None = None
    operation: int = 1
    permission_type: int = 1


@value
class CreateAcls:
    """Add ACLs, all or none. One that exists already changes nothing."""

    entries: tuple[AclEntry, ...]
    dry_run: bool = False


@value
class DeleteAcls:
    """Remove every ACL that one of the filters selects."""

    filters: tuple[AclFilter, ...]
    dry_run: bool = False


@value
class ScramUpsertion:
    """Set a credential. ``mechanism``: 1 SHA-256, 2 SHA-512; the keys are those of RFC 5802."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


@value
class ScramDeletion:
    """Remove a credential."""

    name: str
    mechanism: int


@value
class AlterUserScramCredentials:
    """Set and remove credentials of users, all or none (KIP-554)."""

    upsertions: tuple[ScramUpsertion, ...] = ()
    deletions: tuple[ScramDeletion, ...] = ()
    dry_run: bool = False
