"""Client histories as data, and the checks of what clients may observe. Pure."""
