"""Voter sets, supported versions, and the arithmetic of majorities."""
