"""What a command is evaluated against, and facts that several families read from it."""

from __future__ import annotations

from typing import TypeAlias

from quorum.types import ZERO_UUID, Uuid
from statemachine.config_catalog import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION
from statemachine.delta import ImageDelta
from statemachine.image import MetadataImage
from statemachine.records import ELR_VERSION
from statemachine.sections.cluster import BrokerRegistration

View: TypeAlias = MetadataImage | ImageDelta
"""An image, or one being changed: the leader evaluates against what it has proposed already."""


def is_elr_enabled(view: View) -> bool:
    """Whether eligible leader replicas are kept (KIP-966)."""
    return view.features.level(ELR_VERSION) > 0


def min_insync_replicas(view: View, topic_name: str) -> int:
    """``min.insync.replicas`` of a topic: its own, the cluster's default, or 1."""
    value = view.configs.topic_value(topic_name, MIN_INSYNC_REPLICAS)
    # A foreign log may hold what our catalogue would refuse.
    return max(1, int(value)) if value is not None and _is_number(value) else 1


def allows_unclean_election(view: View, topic_name: str) -> bool:
    """``unclean.leader.election.enable`` of a topic: its own or the cluster's default."""
    return view.configs.topic_value(topic_name, UNCLEAN_LEADER_ELECTION) == "true"


def registered_brokers(view: View) -> list[BrokerRegistration]:
    """All registrations, ascending by id."""
    brokers = view.cluster.brokers
    return [brokers[broker_id] for broker_id in sorted(brokers)]


def topic_name(view: View, topic_id: Uuid) -> str | None:
    """The name of a topic, None for one that does not exist or for no id."""
    return None if topic_id == ZERO_UUID else view.topics.name_of(topic_id)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
