"""A server loads nothing that only other commands, or programs that use the client, need."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.references import ROOT

PROGRAM = """
import sys
import quorate.cli.main, quorate.cli.server
from quorate.light_packages import load_lightly
load_lightly()
import quorate.server.process
print(*sorted(sys.modules))
"""
UNUSED = (
    "rich", "quorate.client.client", "quorate.client.results", "quorum.v1.metadata_pb2_grpc",
    "pyarrow", "argparse", "csv", "email", "html", "http", "importlib.metadata",
    "prometheus_client.exposition", "socketserver", "tempfile", "urllib.request",
    "wsgiref", "zipfile",
)  # fmt: skip
"""Together some 11 MB, in every node."""
WHOLE = """
import sys
from quorate.light_packages import load_lightly
load_lightly(PLACES)
from prometheus_client import Counter, start_http_server
import crc32c, prometheus_client
assert Counter is prometheus_client.metrics.Counter and prometheus_client.REGISTRY
assert crc32c.crc32c(b"") == 0 and crc32c.__version__
assert not hasattr(crc32c, "nothing")
"""


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


@pytest.mark.parametrize(
    "places",
    [
        "",
        "{'crc32c': {'crc32c': 'moved'}, 'prometheus_client': {'Counter': 'registry'}, 'none': {}}",
    ],
    ids=["as a node", "moved by the library"],
)
def test_a_lightly_loaded_package_is_whole_for_who_asks(places: str) -> None:
    subprocess.run(
        [sys.executable, "-c", WHOLE.replace("PLACES", places)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_the_server_loads_lightly_before_anything_of_a_node() -> None:
    source = (ROOT / "quorate/cli/server.py").read_text()
    assert source.index("    load_lightly()") < source.index("    from quorate.doctor.checks")


def test_the_client_package_has_what_it_announces() -> None:
    """Its names are found when they are first used."""
    import quorate.client as client

    assert all(getattr(client, name) is not None for name in client.__all__)
    assert set(client.__all__) <= set(dir(client))
    assert not hasattr(client, "Clinet")
