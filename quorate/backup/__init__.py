"""Backups of a cluster's metadata: created from a node or a directory, verified, and drilled."""
