"""Scenarios: scripts for a small cluster moved by hand, with the output to be printed."""
