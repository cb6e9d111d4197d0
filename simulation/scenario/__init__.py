"""Scenarios: scripts that move a small cluster step by step and state the expected output."""
