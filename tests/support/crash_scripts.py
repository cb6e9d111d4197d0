"""Power is lost behind every change that a script makes to the disk, and what is left is compared.

A script is a list of steps, each of which promises to be durable when it returns. What a restart
finds is the state in front of the step that was interrupted, or the one behind it, or what the
step allows in between; and the rest of the script ends as it would have without the crash.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from simulation.memory_filesystem import KEEP_ALL, LOSE_ALL, CrashMode, Faults, PowerLost
from tests.support.crash_sites import WatchedFileSystem

MODES = {
    "lose-all": LOSE_ALL,
    "torn-tail": CrashMode(keep_writes=1.0, torn=True),
    "names-in-order": CrashMode(keep_names=1.0),
    "names-survive": CrashMode(keep_names=2.0),
    "names-reordered": CrashMode(reordered=True, keep_names=0.5),
    "keep-all": KEEP_ALL,
}
"""Ways in which a disk may treat what was not synced."""

Work = Callable[[WatchedFileSystem], Any]
Between = Callable[[Any, Any, Any], bool]


def before_or_after(before: Any, after: Any, found: Any) -> bool:
    """Whether the step was carried out whole or not at all."""
    return found in (before, after)


class Step(NamedTuple):
    """A piece of work that is durable on return, and may be repeated after a crash inside it."""

    run: Work
    allows: Between = before_or_after
    """Of the states before and after and the one found: whether a crash may leave it."""


class Script(NamedTuple):
    """What is done to one disk."""

    prepare: Work
    steps: tuple[Step, ...]
    read: Callable[[WatchedFileSystem], Any]
    """Start on the disk, as after a power failure, and return what is there."""


class Crash(NamedTuple):
    """What one power failure left."""

    number: int
    """Changes that the interrupted step had made."""
    step: int
    lost_at: tuple[str, int] | None
    fs: WatchedFileSystem


def prepared(script: Script) -> WatchedFileSystem:
    fs = WatchedFileSystem()
    script.prepare(fs)
    fs.write_back()
    return fs


def states(script: Script) -> list[Any]:
    """Return what a restart finds in front of every step, and behind the last."""
    fs = prepared(script)
    found = [_read_copy(script, fs)]
    for step in script.steps:
        step.run(fs)
        found.append(_read_copy(script, fs))
    return found


def _read_copy(script: Script, fs: WatchedFileSystem) -> Any:
    return script.read(copy.deepcopy(fs))


def crashed(
    fs: WatchedFileSystem, run: Work, number: int, mode: CrashMode, seed: int
) -> WatchedFileSystem | None:
    """Run work on a copy of the disk, lose power behind one change; None if it makes fewer."""
    tried = copy.deepcopy(fs)
    tried.faults = Faults(stop_after_call=number)
    try:
        run(tried)
    except PowerLost:
        tried.crash(random.Random(seed), mode)
        return tried
    return None


def crashes(script: Script, mode: CrashMode) -> Iterator[Crash]:
    """Lose power once behind each change that a step makes, after the steps in front of it.

    What those left unsynced may be lost as well.
    """
    fs, seed = prepared(script), 0
    for place, step in enumerate(script.steps):
        number = 0
        while (left := crashed(fs, step.run, number, mode, seed)) is not None:
            yield Crash(number, place, left.lost_at, left)
            number, seed = number + 1, seed + 1
        step.run(fs)


def check(script: Script, expected: list[Any], crash: Crash, allows: Between | None = None) -> None:
    """Compare what is found with what the interrupted step, or else ``allows``, allows."""
    before, after = expected[crash.step], expected[crash.step + 1]
    found = script.read(crash.fs)
    allows = allows or script.steps[crash.step].allows
    assert allows(before, after, found), (crash[:3], before, after, found)


def go_on(script: Script, expected: list[Any], crash: Crash) -> None:
    """Repeat the interrupted step and run the rest: the end is the same as without a crash."""
    for step in script.steps[crash.step :]:
        step.run(crash.fs)
    assert script.read(crash.fs) == expected[-1], crash[:3]


def again(
    script: Script, crash: Crash, mode: CrashMode
) -> Iterator[tuple[tuple[str, int] | None, Crash]]:
    """Lose power a second time, behind every change that the restart makes."""
    number = 0
    while (left := crashed(crash.fs, script.read, number, mode, number)) is not None:
        yield left.lost_at, crash._replace(fs=left)
        number += 1
