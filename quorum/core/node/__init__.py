"""``RaftNode``: the entry points of the core, and the tables that route messages and events."""
