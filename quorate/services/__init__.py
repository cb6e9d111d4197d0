"""gRPC services for clients: translate between the wire and the node."""
