"""The messages between replicas: plain values, one request and one response type per RPC."""
