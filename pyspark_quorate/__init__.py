"""Lets Spark find the data source ``cluster_metadata`` by itself.

Spark imports every module whose name begins with ``pyspark_`` and registers its
``DefaultSource``; nothing else belongs here.
"""

from __future__ import annotations

from audit.source import ClusterMetadataSource as DefaultSource

__all__ = ["DefaultSource"]
