"""A cluster for a campaign that restarts nodes hundreds of times."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.campaigns.broken_node import VARIABLE
from tests.campaigns.damages import NODES_OF, SETTINGS
from tests.integration.processes import Processes
from tests.support import fork_server


@contextlib.contextmanager
def damages_cluster(folder: Path, *, victims: int = 1, defect: str = "") -> Iterator[Processes]:
    """Start a cluster, voters first. Nodes are forked, so that a restart loads no packages.

    ``defect``: one of ``broken_node.DEFECTS``, or none.
    """
    nodes = NODES_OF[victims]
    with fork_server.running():
        cluster = Processes(folder, voters=nodes["voters"], settings=SETTINGS)
        for _ in range(nodes.get("observers", 0)):
            cluster.add_observer(len(cluster.nodes) + 1)
        if defect:
            cluster.program = "tests.campaigns.broken_node"
            cluster.environment[VARIABLE] = defect
        try:
            cluster.format_all()
            cluster.start_all()
            yield cluster
        finally:
            cluster.end_all()
