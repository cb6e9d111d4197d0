"""Verifying a data directory completely: the log, its checkpoints, and the state they stand for."""
