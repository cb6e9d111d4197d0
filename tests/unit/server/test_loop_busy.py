"""The busy share of a thread."""

from __future__ import annotations

import threading
import time

from quorate.server.loop_busy import busy_meter


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_work_counts_and_waiting_does_not() -> None:
    """Read from another thread, as a scrape may be."""
    shares: list[float | None] = []
    share = busy_meter()

    def scrape() -> None:
        shares.append(share())

    def waits() -> None:
        threading.Event().wait(0.2)

    for does in (lambda: work(0.2), waits):
        share()
        does()
        thread = threading.Thread(target=scrape)
        thread.start()
        thread.join()
    worked, waited = shares
    assert worked is not None
    assert waited is not None
    assert 0 <= waited < 0.2
    assert waited < worked <= 1


def test_there_is_no_share_of_no_time(monkeypatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    assert busy_meter()() is None
