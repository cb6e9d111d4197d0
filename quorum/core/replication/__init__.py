"""Serving by leaders and relays, the high watermark, and linearizable reads."""
