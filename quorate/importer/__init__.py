"""Loading another cluster's metadata: a Kafka controller's directory into an empty cluster."""
