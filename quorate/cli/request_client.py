"""The client of a command, which knows whether the command may have changed something.

Its first write carries the request id (``quorate.cli.requests``).
"""

from __future__ import annotations

from quorate.client import Applied, Client
from quorum.v1.commands_pb2 import Command, CommandOrigin


class RequestClient(Client):
    """A client whose first write carries the request id of the command line."""

    request_id = ""

    @property
    def is_in_doubt(self) -> bool:
        """Whether a change was sent whose outcome is not known, also one that was cancelled."""
        return self._writer.is_in_doubt or self._changes.is_in_doubt

    async def write(
        self,
        command: Command,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as in the client
        origin: CommandOrigin | None = None,
        request_id: str = "",
    ) -> Applied:
        """As ``Client.write``."""
        request_id, self.request_id = request_id or self.request_id, ""
        return await super().write(command, timeout=timeout, origin=origin, request_id=request_id)
