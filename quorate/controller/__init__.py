"""The controller: commands in, committed and applied answers out. See ``controller.py``."""
