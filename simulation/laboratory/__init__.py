"""The partition laboratory: model brokers with data partitions, and real clients."""
