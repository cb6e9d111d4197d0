"""Digests of the log, what follows when two differ, and the quarantine of a log that is wrong."""
