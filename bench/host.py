"""How much of the processors the machine's host gave to somebody else while something ran."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil


@dataclass(slots=True)
class HostShare:
    """What the host took between two readings."""

    stolen: float | None = None
    """Share of all processor time, idle time included, from 0 to 1.

    None while the readings are not over, and on a machine that does not tell (no Linux, or a
    hypervisor that hides it).
    """


@contextmanager
def host_share() -> Iterator[HostShare]:
    """Watch what runs inside of the context; the share is there when it ends."""
    share = HostShare()
    before = psutil.cpu_times()
    yield share
    after = psutil.cpu_times()
    if hasattr(after, "steal"):
        spent = sum(after[:_COLUMNS]) - sum(before[:_COLUMNS])
        share.stolen = (after.steal - before.steal) / spent if spent > 0 else 0.0


_COLUMNS = 8
"""user to steal; the two of guests behind them are part of user and nice already."""
