"""The console: a read-only page about one cluster, in a process of its own (extra ``console``)."""
