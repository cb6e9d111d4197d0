"""Faults of a cluster: one function per kind, by name in ``table``."""
