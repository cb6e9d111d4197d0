"""What a replica fetches: records and snapshots, from a leader or a relay."""
