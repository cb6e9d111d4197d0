"""The parts of the metadata image, one module per family: image, delta, replay."""
