"""Registers the data source ``cluster_metadata`` with Spark.

Spark imports every module whose name begins with ``pyspark_`` and registers its
``DefaultSource``.
"""

from __future__ import annotations

from audit.source import ClusterMetadataSource as DefaultSource

__all__ = ["DefaultSource"]
