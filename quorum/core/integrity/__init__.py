"""Log digests, the resolution of differing ones, and the quarantine of a wrong log."""
