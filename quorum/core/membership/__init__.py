"""Changes of the voter set, one at a time."""
