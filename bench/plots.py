"""Draw the figures of a run as SVG: ``python -m bench --plots FOLDER``.

One file per part that was measured: ``bench-writes.svg`` and ``bench-scale.svg``. Equal figures
give equal files. Needs matplotlib (the extra ``plots``). ``python -m bench.plots FOLDER
FIGURES...`` draws the JSON of earlier runs again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.build_form import UNKNOWN_FORM, first_line
from bench.scale_operations import OPERATIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_INCHES = (9.0, 3.4)
_SCALE_INCHES = (12.0, 3.8)
_GROWTH_TARGET = 1.5
"""An operation may cost this many times as much at the largest size (630.18)."""


def draw(figures: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write a file for each part that ``figures`` have, and return their paths.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    import matplotlib
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for part, draw_part in _PARTS.items():
        if not figures.get(part):
            continue
        path = folder / f"bench-{part}.svg"
        with matplotlib.rc_context({"svg.hashsalt": part, "font.size": 9}):
            figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
            draw_part(figure, figures)
            if form := first_line(figures.get("unoptimised", [UNKNOWN_FORM])):
                figure.suptitle(form, color="red")
            figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        written.append(path)
    return written


def _writes(figure: Figure, figures: Mapping[str, Any]) -> None:
    """Writes per second and median latency, by writers and system."""
    rates, latencies = figure.subplots(1, 2)
    systems = {"quorate": figures["writes"]} | {
        name: peer["writes"] for name, peer in figures["peers"].items() if peer.get("writes")
    }
    for name, rows in systems.items():
        writers = [row["clients"] for row in rows]
        rates.plot(writers, [row["rate"] for row in rows], marker="o", label=name)
        latencies.plot(writers, [row["p50_ms"] for row in rows], marker="o", label=name)
    for axes, title in ((rates, "writes per second"), (latencies, "p50 of a write, ms")):
        _style(axes, title, "writers", [row["clients"] for row in figures["writes"]])
    rates.legend(frameon=False)


def _scale(figure: Figure, figures: Mapping[str, Any]) -> None:
    """Memory by size, and how costs grow from the smallest: of the image, and of a leader."""
    figure.set_size_inches(*_SCALE_INCHES)
    memory, *growths = figure.subplots(1, 3)
    images = figures["scale"]["images"]
    sizes = [each["partitions"] for each in images]
    memory.plot(sizes, [each["bytes_per_partition"] for each in images], marker="o")
    _style(memory, "memory, bytes per partition", "partitions", sizes)
    titles = ("image: cost, times the smallest's", "leader: cost, times the smallest's")
    for growth, title, of_kind in zip(
        growths, titles, (_IMAGE_COSTS, _OPERATION_COSTS), strict=True
    ):
        for name, cost in of_kind.items():
            costs = [cost(each) for each in images]
            growth.plot(sizes, [each / costs[0] for each in costs], marker="o", label=name)
        growth.axhline(_GROWTH_TARGET, color="grey", linestyle="--", linewidth=1)
        _style(growth, title, "partitions", sizes)
        growth.legend(frameon=False)


_IMAGE_COSTS: dict[str, Callable[[Mapping[str, Any]], float]] = {
    "checkpoint to image": lambda image: 1 / image["load_records_per_second"],
    "image to checkpoint": lambda image: 1 / image["checkpoint_records_per_second"],
    "iteration": lambda image: 1 / image["iterated_per_second"],
    "fence": lambda image: image["fence_ms"] / image["fenced_partitions"],
    "lookup of a topic": lambda image: image["lookup_us"],
}


def _operation(key: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda image: float(image["operations_us"][key])


_OPERATION_COSTS = {text: _operation(key) for key, text in OPERATIONS.items()}

_PARTS: dict[str, Callable[[Figure, Mapping[str, Any]], None]] = {
    "writes": _writes,
    "scale": _scale,
}


def _style(axes: Axes, title: str, label: str, ticks: list[int]) -> None:
    axes.set_title(title)
    axes.set_xlabel(label)
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{each:,}" for each in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)


def main(folder: str, paths: Sequence[str]) -> None:
    """Draw the figures of these files into ``folder``."""
    for path in paths:
        for drawn in draw(json.loads(Path(path).read_text(encoding="utf-8")), Path(folder)):
            print(drawn)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
