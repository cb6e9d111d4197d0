"""The command line: one file per command group, put together in ``main``. See DESIGN.md."""
