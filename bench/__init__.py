"""Measurements of Quorate beside its peers; ``python -m bench`` is the entry."""

from quorum.transport.poller import poll_on_waiting_thread

# What the documentation asks of client programs; here, because the modules below import gRPC.
poll_on_waiting_thread()
