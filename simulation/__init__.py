"""The simulator: clusters of production replicas on one thread, virtual clocks and disks."""
