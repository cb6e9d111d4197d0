"""A whole quorum on this machine: what `quorate demo` shows, and what tests start for real."""
