"""Freshness of answers, paused processes, and disks that hang."""
