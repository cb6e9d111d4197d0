"""Freshness of answers, process pauses, and hung disks."""
