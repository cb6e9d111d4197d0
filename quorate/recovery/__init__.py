"""Recovery of a quorum that has lost the majority of its voters: see DESIGN.md."""
