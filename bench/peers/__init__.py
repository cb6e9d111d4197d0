"""Other systems, measured beside ours in the same run where they are installed."""
