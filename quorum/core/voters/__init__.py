"""Voter sets, supported versions, and majorities."""
