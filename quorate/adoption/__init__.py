"""A Kafka controller's data directory becomes ours in place, and one of ours Kafka's."""
