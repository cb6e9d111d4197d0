"""The configuration of a server: settings, their sections, and the sources of values."""
