"""All interleavings of small clusters of the real core, to the end."""
