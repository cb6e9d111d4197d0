"""What is done to a cluster: one function per kind of harm, by name in ``table``."""
