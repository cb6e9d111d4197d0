"""The view that a command is evaluated against, and lookups that several families share."""

from __future__ import annotations

from typing import TypeAlias

from quorum.types import ZERO_UUID, Uuid
from statemachine.config_catalog import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION
from statemachine.delta import ImageDelta
from statemachine.image import MetadataImage
from statemachine.records import ELR_VERSION
from statemachine.sections.cluster import BrokerRegistration
from statemachine.sections.configs import topic_value

View: TypeAlias = MetadataImage | ImageDelta
"""An image, or a delta: the leader evaluates against everything it has proposed."""


def is_elr_enabled(view: View) -> bool:
    """Whether eligible leader replicas (KIP-966) are enabled."""
    return view.features.level(ELR_VERSION) > 0


def min_insync_replicas(view: View, topic_name: str) -> int:
    """Return ``min.insync.replicas`` of a topic: its own, the cluster's default, or 1."""
    value = topic_value(view.configs, topic_name, MIN_INSYNC_REPLICAS)
    # An imported log may contain values that our catalogue would refuse.
    return max(1, int(value)) if value is not None and _is_number(value) else 1


def allows_unclean_election(view: View, topic_name: str) -> bool:
    """Whether a topic, or else the cluster's default, allows unclean leader election."""
    return topic_value(view.configs, topic_name, UNCLEAN_LEADER_ELECTION) == "true"


def registered_brokers(view: View) -> list[BrokerRegistration]:
    """Return all registrations, ascending by id."""
    brokers = view.cluster.brokers
    return [brokers[broker_id] for broker_id in sorted(brokers)]


def topic_name(view: View, topic_id: Uuid) -> str | None:
    """Return the name of a topic; None for an unknown topic or the zero id."""
    return None if topic_id == ZERO_UUID else view.topics.name_of(topic_id)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
