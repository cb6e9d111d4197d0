"""What a replica knows of its own log and its snapshots, as offsets and epochs."""
