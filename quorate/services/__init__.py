"""gRPC services for clients: thin translations between the wire and the node."""
