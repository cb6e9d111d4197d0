"""What replicas say to each other: plain values, one request and one response type per RPC."""
