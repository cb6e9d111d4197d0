"""The peer transport: replicas' messages over gRPC. See DESIGN.md."""
