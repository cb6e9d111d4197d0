"""The choice of gRPC's I/O engine: the environment's if it is set, else ours."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quorum.transport.poller import VARIABLE, poll_on_waiting_thread


@pytest.mark.parametrize("chosen", ["", "event_engine_client"])
def test_a_value_from_the_environment_is_kept(chosen: str) -> None:
    """Goal: an operator's choice counts. Method: a variable that is set, also to nothing."""
    environ = {VARIABLE: chosen}
    poll_on_waiting_thread(environ)
    assert environ == {VARIABLE: chosen}


def test_the_command_line_chooses_before_grpc_is_imported() -> None:
    """Goal: the choice takes effect. Method: gRPC reads the variable at import; look before it."""
    code = (
        "import sys, quorate.cli.main; assert 'grpc' not in sys.modules;"
        f"quorate.cli.main.main(['version']); import os; print(os.environ['{VARIABLE}'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={}
    )
    assert "-event_engine_client" in done.stdout.splitlines()[-1]
