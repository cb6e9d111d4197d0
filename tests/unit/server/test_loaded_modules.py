"""A server loads nothing that only other commands, or programs that use the client, need."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.references import ROOT

PROGRAM = """
import sys
import quorate.cli.main, quorate.cli.server, quorate.server.process
print(*sorted(sys.modules))
"""
UNUSED = ("rich", "quorate.client.client", "quorum.v1.metadata_pb2_grpc", "pyarrow")
"""Together some 6 MB, in every node."""


def test_a_server_does_not_load_what_only_other_commands_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    loaded = set(done.stdout.split())
    assert "quorate.client.limits" in loaded
    assert loaded.isdisjoint(UNUSED)


def test_the_client_package_has_what_it_announces() -> None:
    """Its names are found when they are first used."""
    import quorate.client as client

    assert all(getattr(client, name) is not None for name in client.__all__)
    assert set(client.__all__) <= set(dir(client))
    assert not hasattr(client, "Clinet")
