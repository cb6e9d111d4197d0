"""Why an agent ends by itself. Each message says what to do."""

from __future__ import annotations

from quorum.errors import QuorateError


class AgentError(QuorateError):
    """The base of what ends an agent."""


class DuplicateBrokerError(AgentError):
    """Another live process is registered under this broker id."""


class RegistrationError(AgentError):
    """The cluster refuses this broker, or could not be reached in time."""


class HostingError(AgentError):
    """The broker's directories cannot be used."""
