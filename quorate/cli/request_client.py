"""The client of a command whose first write carries a request id (``quorate.cli.requests``)."""

from __future__ import annotations

from quorate.client import Applied, Client
from quorum.v1.commands_pb2 import Command, CommandOrigin


class RequestClient(Client):
    """A client whose first write carries the request id of the command line."""

    request_id = ""

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
