"""The shell around the core: driver, writer, delivery; asyncio only in ``shell``."""
