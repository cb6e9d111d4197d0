"""Cases for the bars of the standing campaigns against live clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.campaigns import damage_check, damages, honest, observation, sending
from tests.campaigns.damage_check import Outcome, Start, evaluated
from tests.campaigns.damages import WHOLE_MIN, Tally
from tests.campaigns.file_damage import MANNERS, TOGETHER, Damage
from tests.campaigns.honest import PRINCIPAL, Batch
from tests.campaigns.observation import NodeState, Observation
from tests.campaigns.report import Report
from tests.evidence.bars import Bars, Passes

_STATE = NodeState(1, 3, 1, (), "{}", 0, is_ready=True)
_SEEN = Observation({1: _STATE, 2: _STATE}, {1: (9, "d"), 2: (9, "d")})
_MARK = Path("d/high-watermark")
_SEGMENT = Path("d/00000000000000000000.log")
_CHECKPOINT = Path("d/00000000000000000009-0000000001.checkpoint")
_STATE_FILE = Path("d/quorum-state")
_IDENTITY = Path("d/meta.properties")
_EPOCHS = Path("d/leader-epoch-checkpoint")
_DIGEST = Path("d/00000000000000000000.digest")


def _run(problems: Sequence[str] = (), shortfalls: Sequence[str] = ()) -> Passes:
    return lambda: Report("x", 1, 1.0, {}, (), problems, shortfalls).exit_code() == 0


def _compared(*, same_image: bool = True, images: Any = None, **changed: Any) -> Passes:
    nodes = {1: _STATE, 2: replace(_STATE, **changed)}
    seen = Observation(nodes, images or _SEEN.digests)
    return lambda: not observation.differences(_SEEN, seen, same_image=same_image)


def _gone() -> bool:
    seen = Observation({1: _STATE}, _SEEN.digests)
    return not observation.differences(_SEEN, seen, same_image=True)


def _explained(explained: dict[int, str], mutants: set[int], unknown: int = 0) -> Passes:
    log = {5: Batch(frozenset({PRINCIPAL}), b"x1001y"), 6: Batch(frozenset(), b"own")}
    return lambda: not honest.unexplained(log, explained, frozenset(mutants), unknown=unknown)


def _ended(how: str) -> Passes:
    return lambda: not sending.wrong_endings({how: 1})


CALLS = Bars(
    ("campaign-calls",),
    (Report.exit_code, observation.differences, honest.unexplained, sending.wrong_endings),
    {
        "nothing wrong": _run(),
        "nothing differs": _compared(),
        "another image where writes were sent": _compared(
            same_image=False, images={1: (9, "e"), 2: (9, "e")}
        ),
        "an honest batch": _explained({5: "1001"}, set()),
        "a mutant's batch": _explained({}, {5}),
        "a batch of an unknown outcome": _explained({}, set(), unknown=1),
        "a refused call": _ended("INVALID_ARGUMENT"),
    },
    {
        "a problem": _run(["x"]),
        "too little": _run((), ["x"]),
        "a node is gone": _gone,
        "an epoch": _compared(epoch=4),
        "images apart": _compared(same_image=False, images={1: (9, "d"), 2: (9, "e")}),
        "another image": _compared(images={1: (9, "e"), 2: (9, "e")}),
        "a batch that nobody knows of": _explained({}, set()),
        "an acknowledged write is nowhere": _explained({7: "1001"}, {5}),
        "an acknowledged write is another": _explained({5: "1002"}, set()),
        "a call raised": _ended(f"{sending.RAISED} (UNKNOWN)"),
        "a connection broke": _ended(f"{sending.GONE} (UNAVAILABLE)"),
    },
)


def _damaged(damage: Damage, **given: Any) -> Passes:
    """A start that is ready, leaves the damage in place and reports nothing, but for ``given``."""
    plain = Start(
        lines=(), last_lines=(), exit_code=None, found={damage.path: damage.after},
        left={damage.path: damage.after}, was_clean=True,
    )  # fmt: skip
    return lambda: not evaluated([damage], replace(plain, **given))[1]


def _reported(line: str, **given: Any) -> dict[str, Any]:
    return {"lines": (line,), "last_lines": (line,), **given}


def _refused(damage: Damage, code: int, line: str) -> Passes:
    return _damaged(damage, exit_code=code, last_lines=(line,))


_ZEROED = Damage(_MARK, "zero", b"m", b"\0")
_FLIPPED = Damage(_SEGMENT, "flip", b"ab", b"ac")
_CUT = Damage(_SEGMENT, "truncate", b"ab", b"a")
_CORRUPT = Damage(_CHECKPOINT, "flip", b"c", b"d")
_EPOCHS_CUT = Damage(_EPOCHS, "flip", b"c", b"d")
_STRANGE = Damage(_STATE_FILE, "zero", b"c", b"\0")
_MADE_UP = Damage(_DIGEST, "copy", None, b"d")
_TAKEN = Damage(_DIGEST, "zero", b"c", b"d")
_REPAIRED = f"event=side_file_repaired file={_MARK.name}"
_FORGED = Damage(_IDENTITY, "foreign", b"c", b"d")


def _enough(total: int = WHOLE_MIN, *, missing: int = 0, without: object = None) -> Passes:
    """A tally of ``total`` damages that has every manner and outcome except ``without``."""
    tally = Tally()
    manners = [each for each in (*MANNERS, *TOGETHER) if each != without]
    for number in range(total):
        tally.counts[manners[number % len(manners)], "killed"] += 1
    for outcome in set(Outcome) - {without}:
        tally.outcomes[manners[0], outcome] += 1
    return lambda: not damages.shortfalls(tally, total + missing)


def _serves(value: str | None) -> Passes:
    return lambda: not damage_check.lost_writes({"a": "v1"}, {"a": value})


def _levels(seen: dict[int, tuple[int, bytes]]) -> Passes:
    return lambda: not damage_check.images_differ(seen)


DAMAGES = Bars(
    ("campaign-damages", "campaign-damages-of-two"),
    (
        Report.exit_code,
        damages.shortfalls,
        damage_check.lost_writes,
        damage_check.images_differ,
        damage_check.evaluated,
        damage_check.refusal,
        damage_check.reports,
        damage_check._is_reported,
        damage_check._unreported,
    ),
    {
        "nothing wrong": _run(),
        "every manner and outcome": _enough(),
        "a short run without a manner": _enough(WHOLE_MIN - 1, without=MANNERS[0]),
        "every write": _serves("v1"),
        "one image": _levels({1: (9, b"d"), 2: (9, b"d")}),
        "images at different offsets": _levels({1: (8, b"d"), 2: (9, b"e")}),
        "repaired, logged and counted": _damaged(
            _ZEROED, **_reported(_REPAIRED, repaired_count=1.0, left={_MARK: b"m"})
        ),
        "a mark that was repaired before the start": _damaged(_ZEROED, found={_MARK: b"m"}),
        "a mark that was replaced before the start": _damaged(_ZEROED, found={_MARK: b"n"}),
        "a mark with unchanged content": _damaged(Damage(_MARK, "swap", b"m", b"m")),
        "a mark that holds the content of the other one": _damaged(
            Damage(_MARK, "swap", b"m", b"n", is_other_mark=True)
        ),
        "a changed comment in the identity": _damaged(
            Damage(_IDENTITY, "flip", b"#a\nnode.id=1", b"#b\nnode.id=1")
        ),
        "a segment set aside": _damaged(
            _FLIPPED, **_reported("event=log_damaged", left={_SEGMENT: b"ab"})
        ),
        "a torn tail": _damaged(
            _FLIPPED, **_reported("event=torn_tail_cut", left={_SEGMENT: b"ab"})
        ),
        "a tail that was not flushed": _damaged(_CUT, left={_SEGMENT: b"ab"}, was_clean=False),
        "a checkpoint set aside": _damaged(
            _CORRUPT, **_reported("event=checkpoint_quarantined", left={_CHECKPOINT: b"c"})
        ),
        "a damaged checkpoint left in place": _damaged(_CORRUPT),
        "a damaged checkpoint deleted": _damaged(_CORRUPT, left={_CHECKPOINT: None}),
        "a side file of a log that was set aside": _damaged(
            _TAKEN, **_reported("event=log_damaged", left={_DIGEST: b"c"})
        ),
        "a side file of a log whose start was restored": _damaged(
            _TAKEN, **_reported("event=log_start_restored", left={_DIGEST: b"c"})
        ),
        "a side file that is named": _damaged(
            _TAKEN, **_reported(f"event=scrub_found {_DIGEST.name}", left={_DIGEST: b"c"})
        ),
        "epochs after an election": _damaged(
            _EPOCHS_CUT, left={_EPOCHS: b"c"}, epochs_changed=True
        ),
        "a file under an invented name": _damaged(_MADE_UP, left={_DIGEST: b"c"}),
        "refused by name": _refused(_STRANGE, 8, _STATE_FILE.name),
        "another node's identity": _refused(_FORGED, 2, _IDENTITY.name),
    },
    {
        "a problem": _run(["x"]),
        "too little": _run((), ["x"]),
        "one damage too few": _enough(missing=1),
        "a manner that did not occur": _enough(without=MANNERS[0]),
        "a pair that did not occur": _enough(without=TOGETHER[0]),
        "an outcome that did not occur": _enough(without=Outcome.REFUSED),
        "a write is lost": _serves(None),
        "a write has another value": _serves("v0"),
        "images differ at one offset": _levels({1: (9, b"d"), 2: (9, b"e")}),
        "repaired without a report": _damaged(_ZEROED, left={_MARK: b"m"}),
        "a damaged mark left in place": _damaged(_ZEROED),
        "repaired and not counted": _damaged(_ZEROED, **_reported(_REPAIRED)),
        "counted and not logged": _damaged(_CORRUPT, repaired_count=1.0),
        "a segment repaired without a report": _damaged(_FLIPPED, left={_SEGMENT: b"ab"}),
        "a flushed tail repaired without a report": _damaged(_CUT, left={_SEGMENT: b"ab"}),
        "a segment repaired without a report after a crash": _damaged(
            _FLIPPED, left={_SEGMENT: b"ab"}, was_clean=False
        ),
        "a deleted segment restored without a report": _damaged(
            Damage(_SEGMENT, "delete", b"ab", None), left={_SEGMENT: b"ab"}, was_clean=False
        ),
        "a segment repaired, but only another file reported": _damaged(
            _FLIPPED, **_reported("event=checkpoint_quarantined", left={_SEGMENT: b"ab"})
        ),
        "a checkpoint repaired, but only another file reported": _damaged(
            _CORRUPT, **_reported("event=torn_tail_cut", left={_CHECKPOINT: b"c"})
        ),
        "a side file repaired, but only another file reported": _damaged(
            _TAKEN, **_reported("event=torn_tail_cut", left={_DIGEST: b"c"})
        ),
        "a side file repaired, with a line that reports no damage": _damaged(
            _TAKEN, **_reported(f"event=opened {_DIGEST.name}", left={_DIGEST: b"c"})
        ),
        "a checkpoint repaired without a report": _damaged(_CORRUPT, left={_CHECKPOINT: b"c"}),
        "epochs repaired without a report": _damaged(_EPOCHS_CUT, left={_EPOCHS: b"c"}),
        "a digest repaired without a report after an election": _damaged(
            _TAKEN, left={_DIGEST: b"c"}, epochs_changed=True
        ),
        "a checkpoint under an invented name repaired without a report": _damaged(
            Damage(_CHECKPOINT, "copy", None, b"d"), left={_CHECKPOINT: b"c"}
        ),
        "a damaged election state accepted": _damaged(_STRANGE),
        "a changed identity accepted": _damaged(
            Damage(_IDENTITY, "flip", b"node.id=1", b"node.id=3")
        ),
        "refused with another code": _refused(_STRANGE, 1, _STATE_FILE.name),
        "damage reported as wrong usage": _refused(_STRANGE, 2, _STATE_FILE.name),
        "another node's election state reported as wrong usage": _refused(
            Damage(_STATE_FILE, "foreign", b"c", b"d"), 2, _STATE_FILE.name
        ),
        "a damaged identity reported as wrong usage": _refused(
            Damage(_IDENTITY, "zero", b"c", b"d"), 2, _IDENTITY.name
        ),
        "refused without a name": _refused(_STRANGE, 8, "damaged"),
        "refused with a traceback": _refused(_STRANGE, 8, f"Traceback {_STATE_FILE.name}"),
    },
)

ENVIRONMENT = Bars(
    ("campaign-environment",),
    (Report.exit_code,),
    {"nothing wrong": _run()},
    {"a problem": _run(["x"]), "a fault that was not made": _run((), ["x"])},
)
