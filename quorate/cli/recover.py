"""``quorate recover``: a quorum that lost the majority of its voters."""

from __future__ import annotations

import click

from quorate.cli.command import LocalGroup
from quorate.cli.recover_apply import apply_command, report_command
from quorate.cli.recover_plan import plan_command


@click.group("recover", cls=LocalGroup)
def recover() -> None:
    """What is left of a quorum that lost the majority of its voters. Needs no running node."""


for _command in (plan_command, apply_command, report_command):
    recover.add_command(_command)
