"""Past states of the metadata, read from the files of a directory or from a checkpoint."""
