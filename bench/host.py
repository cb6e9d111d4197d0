"""Measure how much processor time the hypervisor withheld (steal time) during a measurement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil


@dataclass(slots=True)
class HostShare:
    """The steal time between two readings."""

    stolen: float | None = None
    """Share of all processor time, idle time included, from 0 to 1.

    None until the second reading, and on machines that do not report it (no Linux, or a
    hypervisor that hides it).
    """


@contextmanager
def host_share() -> Iterator[HostShare]:
    """Measure inside the context; the share is set when the context ends."""
    share = HostShare()
    before = psutil.cpu_times()
    yield share
    after = psutil.cpu_times()
    if hasattr(after, "steal"):
        spent = sum(after[:_COLUMNS]) - sum(before[:_COLUMNS])
        share.stolen = (after.steal - before.steal) / spent if spent > 0 else 0.0


_COLUMNS = 8
"""Columns user to steal; the two guest columns after them are part of user and nice."""
