"""The environment of the core: driver, writer, delivery; asyncio only in ``shell``."""
