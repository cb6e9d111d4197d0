"""Positions of a replica's own log and snapshots, as offsets and epochs."""
