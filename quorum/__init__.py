"""The replicated log: consensus core, log on disk, runtime and transport."""
