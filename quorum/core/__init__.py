"""The consensus core: sans-IO, synchronous, deterministic. See quorum/DESIGN.md."""
