"""Other systems, measured in the same run if `install` built them; `programs` has the sources."""
