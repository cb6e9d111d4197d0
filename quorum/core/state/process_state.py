"""What the runtime reported about its own process by local events.

See: ``quorum.core.node.local_event_handlers``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorum.core.voters.versions import Versions
from quorum.types import Endpoint


@dataclass(slots=True)
class ProcessState:
    """The newest report of each kind; the defaults hold until there is one."""

    endpoints: tuple[Endpoint, ...] = ()
    """Where this process listens."""
    versions: Versions = field(default_factory=Versions)
    replay_stopped: str = ""
    """Why committed records are no longer applied here; empty while they are."""
    is_shutting_down: bool = False
