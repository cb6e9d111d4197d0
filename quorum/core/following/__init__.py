"""A replica's fetching of records and snapshots, from a leader or a relay."""
