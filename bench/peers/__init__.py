"""Other systems, measured in the same run if they are installed."""
