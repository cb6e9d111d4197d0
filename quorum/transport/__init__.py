"""The peer transport: replicas' messages over gRPC. ``DESIGN.md`` is the place to start."""
