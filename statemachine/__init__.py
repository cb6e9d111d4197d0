"""From log records to the metadata image, and back to a checkpoint's records."""
