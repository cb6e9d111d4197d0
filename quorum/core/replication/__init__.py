"""What a leader or a relay serves, what is committed, and how reads become linearizable."""
