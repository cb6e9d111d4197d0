"""Clocks that are set, drift and jump. Safety depends on none of them."""

from __future__ import annotations

from simulation.faults.site import Site

_HOUR_MS = 3_600_000


def wall_step(site: Site) -> bool:
    """Set a wall clock, by up to an hour."""
    member = site.any(up=True)
    if member is not None:
        member.clock.step_wall(site.rng.randint(-_HOUR_MS, _HOUR_MS))
    return member is not None


def strobe(site: Site) -> bool:
    """Set a wall clock back and forth, many times in a second."""
    member = site.any(up=True)
    if member is None:
        return False
    by_ms = site.rng.randint(50, 20_000)

    def step(times: int) -> None:
        member.clock.step_wall(by_ms if times % 2 else -by_ms)
        if times:
            site.later(10_000, step, times - 1)

    step(site.rng.randint(5, 40))
    return True


def drift(site: Site) -> bool:
    """Let a node's clocks run at another rate from now on, up to a tenth off."""
    member = site.any(up=True)
    if member is not None:
        member.clock.set_rate(1000 + site.rng.randint(-100, 100))
        member.wake()
    return member is not None


def jump(site: Site) -> bool:
    """Resume a machine from suspension: its monotonic clock has advanced by seconds."""
    member = site.any(up=True)
    if member is not None:
        member.clock.jump(site.some_us(2_000_000) // 1000)
        member.wake()
    return member is not None


def slow_calls(site: Site) -> bool:
    """Let time pass inside the next calls of a node, which gets little of its processor."""
    member = site.any(up=True)
    if member is not None:
        member.clock.run_slowly(site.rng.randint(1, 20), site.rng.randint(50, 500))
        member.wake()
    return member is not None
