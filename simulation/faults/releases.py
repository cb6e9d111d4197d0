"""Nodes that are started with another release, or with the wrong record codec."""

from __future__ import annotations

from simulation.faults.site import Site
from simulation.member import Member
from simulation.memory_filesystem import KEEP_ALL
from statemachine.image import MetadataImage
from statemachine.records import (
    BrokerFencedEvent,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)

NEW_TYPES = (
    TopicRecord,
    RemoveTopicRecord,
    RegisterBrokerRecord,
    ProducerIdsRecord,
    BrokerFencedEvent,
)
"""One of them is taken to be new, so that an older release does not know it."""

_OLDER_US = 300_000


def older_release(site: Site) -> bool:
    """Restart a running node with an older release, and with the present one after a while.

    One node at a time, so that the nodes that cannot lead stay fewer than any majority.
    """
    if any(each.lacks for each in site.cluster.members.values()):
        return False
    member = site.any(up=True)
    if member is None:
        return False
    _restart(member, frozenset((site.rng.choice(NEW_TYPES).API_KEY,)))
    site.later(site.some_us(_OLDER_US), _restart, member, frozenset())
    return True


def _restart(member: Member, lacks: frozenset[int]) -> None:
    member.lacks = lacks
    if member.is_up:
        member.crash("kill", KEEP_ALL, is_refusing=True)
        member.boot()


def other_codec(site: Site) -> bool:
    """Restart a running node with a codec that is not its directory's.

    It must refuse to start, and restarts once that is corrected. An empty directory has no codec
    yet.
    """
    member = site.any(up=True)
    if member is None or member.replica is None:
        return False
    if member.replica.controller.image.has_content_of(MetadataImage()):
        return False
    member.asks_other_codec = True
    member.crash("kill", KEEP_ALL, is_refusing=True)
    member.boot()
    return True
