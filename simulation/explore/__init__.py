"""Explore all interleavings of small clusters of the production core."""
