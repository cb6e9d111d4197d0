"""A certificate authority in a folder, for one cluster (ADR 67)."""
