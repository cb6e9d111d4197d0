"""Benchmarks of Quorate and its peers; run ``python -m bench``."""

from quorum.transport.poller import poll_on_waiting_thread

# The documentation recommends this to client programs; set before the modules below import gRPC.
poll_on_waiting_thread()
