"""Checks of an installation and of a data directory, each with a reason and a remedy."""
