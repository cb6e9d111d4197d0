"""The name that a node's certificate must carry, so that no node acts in the name of another.

A certificate of the right authority proves membership; only a name in it proves which node it is.
With the template ``node-{id}.quorum.example``, node 3 is the process whose certificate has the
subject alternative name ``node-3.quorum.example``. Without a template, node ids are not verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
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
    """The templates of certificate names, with ``{id}`` once in each.

    Raises:
        ConfigError: A template does not make a DNS name of every node id.
    """

    template: str
    observer_template: str = ""
    """For nodes that fetch and never vote; empty: every node's certificate may vote."""

    def __post_init__(self) -> None:
        templates = [self.template, *filter(None, [self.observer_template])]
        for template in templates:
            longest = _named(template, _LARGEST_ID)
            if (
                template.count(ID_PLACE) != 1
                or len(longest) > _DNS_NAME_LENGTH_MAX
                or _DNS_NAME.fullmatch(longest) is None
            ):
                raise ConfigError([f"{template!r} is no DNS name with {ID_PLACE} once in it"])

    def of(self, node: NodeId) -> str:
        """Return the name that the certificate of ``node`` must carry, if it is to vote."""
        return _named(self.template, node)

    def all_of(self, node: NodeId) -> tuple[str, ...]:
        """Return the names of which the certificate of ``node`` must carry one."""
        if not self.observer_template:
            return (self.of(node),)
        return self.of(node), _named(self.observer_template, node)

    def voter_problem(self, node: NodeId, auth: Mapping[str, Iterable[bytes]]) -> str | None:
        """Return why a caller that is ``node`` may not vote; None if it may."""
        if node == NO_NODE or not self.observer_template:
            return None
        if self.of(node) in {_text(name) for name in auth.get(_ALTERNATIVE_NAME, ())}:
            return None
        return f"the certificate of node {node} is an observer's: it lacks {self.of(node)}"

    def names_voter(self, auth: Mapping[str, Iterable[bytes]]) -> bool:
        """Whether a certificate is that of a node that may vote, whichever node it is."""
        return _matches_any(self.template, auth)

    def names_observer(self, auth: Mapping[str, Iterable[bytes]]) -> bool:
        """Whether a certificate is that of a node that may only fetch, whichever node it is."""
        return bool(self.observer_template) and _matches_any(self.observer_template, auth)

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
        if any(name in found for name in self.all_of(node)):
            return None
        wanted = " or ".join(self.all_of(node))
        carries = ", ".join(found[:_SHOWN_MAX]) + (", ..." if len(found) > _SHOWN_MAX else "")
        return (
            f"the caller claims to be node {node}, whose certificate carries the name "
            f"{wanted}; the one shown carries {carries or 'no alternative name'}"
        )


def names_by(template: str, observer_template: str = "") -> NodeNames | None:
    """Return the names that the templates make; None for an empty ``template``.

    Raises:
        ConfigError: A template does not make a DNS name of every node id.
    """
    return NodeNames(template, observer_template) if template else None


def _named(template: str, node: NodeId) -> str:
    return template.lower().replace(ID_PLACE, str(node))


@cache
def _pattern(template: str) -> re.Pattern[str]:
    before, _, behind = template.lower().partition(ID_PLACE)
    return re.compile(rf"{re.escape(before)}(0|[1-9]\d*){re.escape(behind)}", re.ASCII)


def _matches_any(template: str, auth: Mapping[str, Iterable[bytes]]) -> bool:
    """Whether a certificate carries the name of some node, written without leading zeros."""
    pattern = _pattern(template)
    names = (_text(name) for name in auth.get(_ALTERNATIVE_NAME, ()))
    return any(pattern.fullmatch(name) is not None for name in names)


def _text(name: bytes) -> str:
    return name.decode("ascii", "backslashreplace").lower()
