"""``python -m tests.chaos --minutes 30``: break a real cluster and check what its clients saw."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from pathlib import Path

from tests.chaos.run import Result, Run, default_folder


def main() -> int:
    """Return 0: passed; 3: something is violated or undecided, and the folder is kept.

    1: nothing is violated, but there were too few faults or answered operations.
    """
    parser = argparse.ArgumentParser(prog="tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="minutes of faults")
    parser.add_argument("--seed", type=int, help="repeats a schedule; drawn when not given")
    parser.add_argument("--faults-min", type=int, default=0, help="fail with fewer faults")
    parser.add_argument(
        "--operations-min", type=int, default=0, help="fail with fewer answered operations"
    )
    parser.add_argument("--voters", type=int, default=3)
    parser.add_argument("--peer-tcp", action="store_true", help="peer streams over TCP (ADR 63)")
    parser.add_argument("--folder", type=Path, help="where logs and the history are written")
    parser.add_argument("--keep", action="store_true", help="keep the folder in any case")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, too")
    parser.add_argument("--quiet", action="store_true", help="do not print each fault")
    given = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    folder = given.folder or default_folder(seed)
    folder.mkdir(parents=True, exist_ok=True)
    announce(f"seed {seed}, {given.voters} voters, {given.minutes:g} min, below {folder}")
    run = Run(
        folder,
        seed=seed,
        seconds=given.minutes * 60,
        voters=given.voters,
        has_peer_tcp=given.peer_tcp,
        announce=lambda line: None if given.quiet else announce(line),
    )
    try:
        result = run.execute()
    except BaseException:
        warn(run.cluster.report())
        print_how_to_look(folder, seed, given.minutes)
        raise
    announce("\n".join(table(result)))
    if given.json:
        announce(json.dumps(result.document(), indent=2))
    shortfalls = result.shortfalls(faults_min=given.faults_min, operations_min=given.operations_min)
    for shortfall in shortfalls:
        warn(f"too little happened: {shortfall}")
    if not result.is_good:
        warn("\n".join([*result.report.explanation(), *result.problems]))
        print_how_to_look(folder, seed, given.minutes)
    elif not given.keep and given.folder is None:
        shutil.rmtree(folder)
    return result.exit_code(shortfalls)


def announce(text: str) -> None:
    """Print a line of the report and flush it."""
    print(text, flush=True)


def warn(text: str) -> None:
    """Print what went wrong, and how to look into it."""
    print(text, file=sys.stderr, flush=True)


def print_how_to_look(folder: Path, seed: int, minutes: float) -> None:
    """Print where the files are, and how to check and repeat the run."""
    warn(
        f"kept: {folder} (history.jsonl, node-*/server.log, node-*/data)\n"
        f"check again: quorate history check {folder / 'history.jsonl'}\n"
        f"same schedule: python -m tests.chaos --seed {seed} --minutes {minutes:g}",
    )


def table(result: Result) -> list[str]:
    """Print a summary of the run."""
    document = result.document()
    tally = result.tally
    lines = ["", f"{'FAULTS':44} COUNT  WITH EFFECT"]
    lines += [
        f"{kind:44} {count:5}  {tally.effects[kind]:11}"
        for kind, count in sorted(tally.counts.items())
    ]
    lines += [f"{'all':44} {tally.counts.total():5}  {tally.effects.total():11}"]
    lines += [
        f"{'leaders cut off, replaced':44} {tally.isolated_leaders:5}  {tally.deposed_leaders:11}"
    ]
    lines += [
        f"{'no effect, explained by another fault':44} {tally.missed_beside_others:5}",
        f"{'not replaced, explained by another fault':44} {tally.disturbed_isolations:5}",
    ]
    lines += ["", f"{'OPERATIONS':44} COUNT"]
    lines += [f"{kind:44} {count:5}" for kind, count in sorted(result.report.outcomes.items())]
    lines += [f"{'answered operations':44} {result.report.answered:5}"]
    lines += [f"{'watched changes, not counted above':44} {result.report.deliveries:5}"]
    for name in ("keys", "log_batches", "log_gaps", "log_offsets_unread", "lost",
                 "duplicated", "stale", "not_linearizable", "check_seconds",
                 "check_result"):  # fmt: skip
        lines.append(f"{name.replace('_', ' '):44} {document[name]:>5}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
