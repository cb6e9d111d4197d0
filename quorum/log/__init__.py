"""The replicated log on disk: segments, side files, recovery. Blocking, no event loop."""
