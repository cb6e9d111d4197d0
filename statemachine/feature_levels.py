"""Kafka's feature levels up to Kafka 4.4.0, each with the release it belongs to.

The only table of levels: supported ranges, the levels of a new cluster, the levels an import
accepts and the lists in the documents follow from it. A level belongs to the release whose
metadata.version made it the level of new clusters; some could be requested one release earlier.
Source: ``MetadataVersion`` and the feature enumerations of kafka-server-common 4.0.2 to 4.4.0,
production levels only; KIP-584.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from statemachine.records import ELR_VERSION, METADATA_VERSION

KRAFT_VERSION: Final = "kraft.version"

RELEASES: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {
        METADATA_VERSION: MappingProxyType(
            {
                7: "3.3",
                8: "3.4",
                **dict.fromkeys(range(9, 12), "3.5"),
                **dict.fromkeys(range(12, 15), "3.6"),
                **dict.fromkeys(range(15, 20), "3.7"),
                20: "3.8",
                21: "3.9",
                **dict.fromkeys(range(22, 26), "4.0"),
                **dict.fromkeys(range(26, 28), "4.1"),
                **dict.fromkeys(range(28, 30), "4.2"),
                30: "4.3",
                **dict.fromkeys(range(31, 34), "4.4"),
            }
        ),
        KRAFT_VERSION: MappingProxyType({1: "3.9"}),
        ELR_VERSION: MappingProxyType({1: "4.1"}),
        "group.version": MappingProxyType({1: "4.0"}),
        "share.version": MappingProxyType({1: "4.2", 2: "4.4"}),
        "streams.version": MappingProxyType({1: "4.2"}),
        "transaction.version": MappingProxyType({1: "4.0", 2: "4.0"}),
    }
)
"""Kafka's release by feature and level. Level 0, an unused feature, is in all releases."""


def supported_range(name: str) -> tuple[int, int]:
    """Return the lowest and highest level (inclusive) of a feature that this release supports.

    Raises:
        KeyError: There is no such feature.
    """
    levels = RELEASES[name]
    # Below 3.3 KRaft is not for production; every other feature may be unused (level 0).
    return min(levels) if name == METADATA_VERSION else 0, max(levels)
