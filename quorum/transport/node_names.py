"""The name that a node's certificate must carry, so that no node acts in the name of another.

A certificate of the right authority proves membership; only a name in it proves which node it is.
With the template ``node-{id}.quorum.example``, node 3 is the process whose certificate has the
subject alternative name ``node-3.quorum.example``. Without a template, node ids are not verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from quorum.errors import ConfigError
from quorum.types import NO_NODE, NodeId

ID_PLACE: Final = "{id}"
_ALTERNATIVE_NAME: Final = "x509_subject_alternative_name"
_DNS_NAME: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_DNS_NAME_LENGTH_MAX: Final = 253
_LARGEST_ID: Final = 2**31 - 1
_SHOWN_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class NodeNames:
    """The template of certificate names, with ``{id}`` once in it.

    Raises:
        ConfigError: The template does not make a DNS name of every node id.
    """

    template: str

    def __post_init__(self) -> None:
        longest = self.of(_LARGEST_ID)
        if (
            self.template.count(ID_PLACE) != 1
            or len(longest) > _DNS_NAME_LENGTH_MAX
            or _DNS_NAME.fullmatch(longest) is None
        ):
            raise ConfigError([f"{self.template!r} is no DNS name with {ID_PLACE} once in it"])

    def of(self, node: NodeId) -> str:
        """Return the name that the certificate of ``node`` must carry."""
        return self.template.lower().replace(ID_PLACE, str(node))

    def problem(self, node: NodeId, auth: Mapping[str, Iterable[bytes]]) -> str | None:
        """Return why a caller is not ``node``, in words; None if it is.

        A caller without a node id passes. Only an exact name counts: a wildcard would match every
        node, and a common name was not issued for this use.

        Args:
            node: The node id that the caller claims.
            auth: gRPC's authentication context of the call; empty without TLS.
        """
        if node == NO_NODE:
            return None
        found = sorted({_text(name) for name in auth.get(_ALTERNATIVE_NAME, ())})
        if self.of(node) in found:
            return None
        carries = ", ".join(found[:_SHOWN_MAX]) + (", ..." if len(found) > _SHOWN_MAX else "")
        return (
            f"the caller claims to be node {node}, whose certificate carries the name "
            f"{self.of(node)}; the one shown carries {carries or 'no alternative name'}"
        )


def names_by(template: str) -> NodeNames | None:
    """Return the names that ``template`` makes; None for an empty template.

    Raises:
        ConfigError: The template does not make a DNS name of every node id.
    """
    return NodeNames(template) if template else None


def _text(name: bytes) -> str:
    return name.decode("ascii", "backslashreplace").lower()
