"""gRPC's own view of its connections and calls (channelz), if ``security.channelz`` asks for it.

It shows the addresses of all callers, so in mode bound it is for operators. Servers of grpc.aio
have the same data as others.

The service is that of gRPC's proposal A14.
"""

from __future__ import annotations

from quorate.services.foreign import ForeignServices
from quorum.errors import ConfigError


def add_channelz(services: ForeignServices) -> None:
    """Serve channelz.

    Raises:
        ConfigError: The package is not installed.
    """
    try:
        from grpc_channelz.v1 import channelz, channelz_pb2_grpc
    except ImportError as error:
        raise ConfigError(
            [
                "security.channelz needs grpcio-channelz: install it with "
                "`pip install 'quorate[channelz]'`"
            ]
        ) from error
    channelz_pb2_grpc.add_ChannelzServicer_to_server(channelz.aio.ChannelzServicer(), services)
